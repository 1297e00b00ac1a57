package shell

import (
	"strconv"

	"lockproxy/cmd/lockproxy/cli"
)

// Commands returns the rows of the table of commands that are about a proxy which runs.
func Commands() []cli.Command {
	return []cli.Command{
		{
			Name: "run", Help: "run a command while a lock is held, as flock does", Run: Run,
			Usage: []string{"lockproxy run KEY [flags] -- command [argument ...]"},
			Text: `It takes the lock KEY at a proxy, runs the command, and gives the lock back when the command has ended. While somebody else ` +
				`holds the lock it waits in line, for --wait at most. The lock is extended for as long as the command runs.

If the lock is lost, or can soon not be known to be held any more, the command and whatever it has started get SIGTERM, and then ` +
				`SIGKILL, before the lock's validity is over. The time is counted by this machine's clock from before the request was sent. ` +
				`Signals are handed on to the command's process group. What the command leaves behind in its process group when it ends is ended, too. ` +
				`A process that leaves the group, as a daemon does, is out of reach: do not start one under a lock.

With several proxies, the lock is extended through whichever answers: a proxy that stops, or is restarted, costs nothing.`,
			Flags:    newRunner().flags(),
			Operands: []string{"KEY"},
			Variables: append([]cli.Word{
				{Name: "LOCKPROXY_KEY", Help: "for the command: the name of the lock"},
				{Name: "LOCKPROXY_TOKEN", Help: "for the command: who holds the lock"},
				{Name: "LOCKPROXY_FENCE", Help: "for the command: a number that grows with each lock; hand it to what the lock guards"},
			}, variables...),
			Exits: []cli.Word{
				{Name: "the command's", Help: "the command has run; 128 and the signal, if one ended it"},
				{Name: strconv.Itoa(exitConflict), Help: "the lock is not granted in time (--conflict-exit-code has another number); nothing was run"},
				{Name: strconv.Itoa(exitUsage), Help: "a flag, a variable or a file is wrong; nothing was run"},
				{Name: strconv.Itoa(exitUnavailable), Help: "no proxy could be reached, or no quorum of masters answered, or the proxy refuses; nothing was run"},
				{Name: strconv.Itoa(exitLost), Help: "the lock was lost while the command ran"},
				{Name: strconv.Itoa(exitNotRunnable), Help: "the command could not be started"},
				{Name: strconv.Itoa(exitNotFound), Help: "there is no such command"},
				{Name: "128 + signal", Help: "a signal came while the lock was waited for; nothing was run"},
			},
			Examples: []string{
				"lockproxy run backup --proxy 10.0.0.4:6380,10.0.0.5:6380 -- /usr/local/bin/backup",
				"lockproxy run job:7 --ttl 10s --wait 0 -- sh -c 'curl -H \"Fence: $LOCKPROXY_FENCE\" http://store/job/7'",
			},
		},
		{
			Name: "locks", Help: "list the locks that a quorum of masters holds", Run: List,
			Usage: []string{"lockproxy locks [PATTERN] [flags]"},
			Text: `It asks a proxy which locks are held, through whatever proxy they were taken: who holds each lock, since when, for how long still, and how many ` +
				`clients wait for it at that proxy. PATTERN is one of Redis's, such as 'job:*'. AGE is told by the fence, and only of locks that have one. ` +
				`CLIENT, NAME, USER and LIBRARY are of the client of that proxy that holds the lock, as far as it remembers.`,
			Flags: newLister().flags(), Operands: []string{"PATTERN"}, Variables: variables, Exits: askExits,
			Examples: []string{"lockproxy locks", "lockproxy locks 'job:*' --json | jq '.locks[] | select(.waiters > 0)'"},
		},
		{
			Name: "status", Help: "show the proxies and their masters: which vote, and why others do not", Run: ShowStatus,
			Usage: []string{"lockproxy status [flags]"},
			Text:  `It asks each proxy about itself and about its masters. To look at the masters without a proxy, use lockproxy check.`,
			Flags: (&stater{}).flags(), Variables: variables,
			Exits: []cli.Word{
				{Name: "0", Help: "each proxy answered, and has a quorum of masters"},
				{Name: strconv.Itoa(exitUsage), Help: "a flag, a variable or a file is wrong"},
				{Name: strconv.Itoa(exitUnavailable), Help: "a proxy did not answer, or has no quorum"},
			},
			Examples: []string{"lockproxy status --proxy 10.0.0.4:6380,10.0.0.5:6380"},
		},
		{
			Name: "top", Help: "show proxies, masters, hottest keys and locks again and again", Run: Top,
			Usage: []string{"lockproxy top [PATTERN] [flags]"},
			Text: `In a terminal the view is drawn anew, and fits the window: q ends, w, r, a, t and k sort the locks by waiters, refused attempts, age, TTL and key. ` +
				`The hottest keys are those with the most refused attempts, and the most seconds of waiting, a minute, lately, over the proxies named. ` +
				`If the output is no terminal, the looks are printed below each other, with --json each as one line.`,
			Flags: newViewer().flags(), Operands: []string{"PATTERN"}, Variables: variables, Exits: askExits,
			Examples: []string{"lockproxy top", "lockproxy top 'job:*' --sort age --every 1s", "lockproxy top --json --times 1"},
		},
	}
}

var askExits = []cli.Word{
	{Name: "0", Help: "done"},
	{Name: strconv.Itoa(exitUsage), Help: "a flag, a variable or a file is wrong"},
	{Name: strconv.Itoa(exitUnavailable), Help: "no proxy could be reached, or no quorum of masters answered"},
}
