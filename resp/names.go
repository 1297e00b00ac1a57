package resp

import "slices"

// A nameIndex finds a name among the names of one command.
type nameIndex struct {
	all    []string
	places map[string]int // index in all; nil for few names, which are searched
}

func indexed(all []string) nameIndex {
	n := nameIndex{all: all}
	if len(all) > 8 {
		n.places = make(map[string]int, len(all))
		for i, name := range all {
			n.places[name] = i
		}
	}
	return n
}

// index returns the index of the name in all, or −1.
func (n *nameIndex) index(name string) int {
	if n.places == nil {
		return slices.Index(n.all, name)
	}
	if i, found := n.places[name]; found {
		return i
	}
	return -1
}

// distinct returns names in their order, each once.
func distinct(names []string) []string {
	if len(names) == 1 {
		return names
	}
	seen := make(map[string]bool, len(names))
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		was := seen[name]
		seen[name] = true
		return was
	})
}
