package config

// Nearest returns the word of words that is most like name, or "" if none is close enough.
func Nearest(name string, words []string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, w := range words {
		if d := distance(name, w); d < least {
			best, least = w, d
		}
	}
	return best
}

// distance is the number of letters to add, remove, replace or swap (Damerau and Levenshtein, restricted).
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// didYouMean ends a message about an unknown name.
func didYouMean(name string, words []string, otherwise string) string {
	if near := Nearest(name, words); near != "" {
		return "; did you mean " + near + "?"
	}
	return "; " + otherwise
}
