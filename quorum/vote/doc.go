// Package vote counts the masters' answers to a client's script: pure, without clock and without I/O.
//
// Enters: the rule of a script (Rule), and the replies of its wrapper, master by master (Parse). Leaves: a vote for each answer, which is
// computed once (Rule.Judge); the decision, the client's reply, and whose effects are to be put back (Count).
//
//	value.go, seen.go         a reply, as the wrapper encodes it and as its client will see it; the parts of it that clocks told
//	answer.go                 an answer: the reply, and the script's effect on each key
//	rule.go, merge.go         the rules
//	standing.go               who is next in the queue of a fair lock
//
// Promises: no later answer changes a decision. Any bytes of a master are an answer or an error.
package vote
