package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"lockproxy/quorum"
	"lockproxy/quorum/masters"
)

// A permit is a group of commands that lockproxy runs on masters, and the cost of doing without any of the commands.
type permit struct {
	cost     string
	needed   bool        // without it a master is no voter
	commands [][2]string // a command as ACL rules name it, and arguments that change nothing; $ is an absent key
}

// permits are all permissions that docs/deploying.md lists for lockproxy's user. The subscriptions are tried apart.
var permits = []permit{
	{"it cannot vote in databases other than 0", true, [][2]string{{"SELECT", "0"}}},
	{"it cannot vote", true, [][2]string{
		{"SCRIPT LOAD", "return(1)"}, {"EVAL", "return(1) 0"}, {"MGET", "$"}, {"GET", "$"}, {"SET", "$ 1 XX"},
		{"PTTL", "$"}, {masters.OurKeys, ""},
	}},
	{"locks with names that its key patterns leave out get no vote there", false, [][2]string{{masters.AllKeys, "GET"}}},
	{"nothing vouches for its clock: it cannot vote", true, [][2]string{{"TIME", ""}}},
	{"unlocking, extending, undoing, or its way out of quarantine fails: it does not count as a voter", true, [][2]string{
		{"EVALSHA", strings.Repeat("0", 40) + " 0"}, {"DEL", "$"}, {"EXISTS", "$"}, {"TYPE", "$"}, {"PEXPIRE", "$ 1"}, {"PEXPIREAT", "$ 1"},
	}},
	{"its run id is not known, so every broken connection counts as a restart, and quarantines it; " +
		"evictions, and restarts that no proxy watched, go unnoticed", false, [][2]string{{"INFO", ""}}},
	{"that it became a replica is noticed from its errors only", false, [][2]string{{"ROLE", ""}}},
	{"AOF with fsync always earns it nothing: every restart quarantines it; told to evict, it votes for up to half a second more", false, [][2]string{{"CONFIG GET", masters.AppendSettings}}},
	{"a key that was set over a connection that broke stays until its TTL", false, [][2]string{
		{"CLIENT ID", ""}, {"CLIENT KILL", fmt.Sprint("ID ", int64(math.MaxInt64))}, // nobody has it; before Redis 7, 0 is everybody
	}},
	{"when a key expires is known to 2 ms only, in undoing too", false, [][2]string{{"PEXPIRETIME", "$"}}},
	{"what a script did that lost its vote is not always put back", false, [][2]string{{"DUMP", "$"}, {"RESTORE", "$ 0 x"}}},
	{"messages do not reach clients through it, and those that wait for a lock may wait for longer", false, [][2]string{
		{"PUBLISH", quorum.BellPrefix + "$ x"}, {"SUBSCRIBE", ""}, {"UNSUBSCRIBE", ""}, {"PSUBSCRIBE", ""}, {"PUNSUBSCRIBE", ""},
		{masters.AllChannels, ""},
	}},
	{"it does not count when clients ask with PUBSUB", false, [][2]string{
		{"PUBSUB CHANNELS", "$"}, {"PUBSUB NUMSUB", "$"}, {"PUBSUB NUMPAT", ""},
	}},
	{"clients cannot read keys of other types than string there, or they count as different from other masters'", false, [][2]string{
		{"HGET", "$ f"}, {"HMGET", "$ f"}, {"HGETALL", "$"}, {"HEXISTS", "$ f"}, {"HLEN", "$"}, {"HSTRLEN", "$ f"}, {"HKEYS", "$"},
		{"HVALS", "$"}, {"SMEMBERS", "$"}, {"LRANGE", "$ 0 0"}, {"ZRANGE", "$ 0 0"},
		{"SCARD", "$"}, {"LLEN", "$"}, {"ZCARD", "$"}, {"OBJECT ENCODING", "$"},
	}},
	{"reads of long strings have no answer there, or a different one, and take it longer", false, [][2]string{
		{"STRLEN", "$"}, {"GETRANGE", "$ 0 0"},
	}},
	{"LOCKS learns no names of locks there, and is an error where too many masters tell none", false, [][2]string{{"SCAN", "0"}}},
	{"lockproxy init does not see what is on it", false, [][2]string{{"DBSIZE", ""}}},
	{"its ACL LOG fills with what lockproxy asks for to see that it is alive", false, [][2]string{{"PING", ""}}},
}

// permitsThere are all permissions that docs/upstream.md lists for lockproxy's user at the upstream.
var permitsThere = []permit{
	{"commands that lockproxy does not have itself, such as LPUSH, are an error", false, [][2]string{{"COMMAND", ""}}},
	{"clients have no database there but 0", false, [][2]string{{"SELECT", "0"}}},
	{"a client that waits there, as in BLPOP, cannot be unblocked, and is cut off when lockproxy stops", false, [][2]string{
		{"CLIENT ID", ""}, {"CLIENT UNBLOCK", fmt.Sprint(int64(math.MaxInt64))},
	}},
	{"connections have no names there", false, [][2]string{{"CLIENT SETNAME", "lockproxy"}}},
	{"transactions that hold commands about the connection fail, and one that was refused may go on there", false, [][2]string{
		{"PING", ""}, {"DISCARD", ""},
	}},
}

// probeMaster asks a master about itself, and tries every permission that lockproxy needs.
func probeMaster(ctx context.Context, m *masters.Redis, databases int) (masters.Info, error) {
	absent := "lockproxy:probe:" + rand.Text()
	info, err := m.Probe(ctx, trials(permits, absent, databases)...)
	if err == nil {
		err = m.TryListening(ctx, absent, &info)
	}
	return info, err
}

// trials returns the commands whose replies show which permits a server gives. absent is a key that the server does not have.
func trials(permits []permit, absent string, databases int) []masters.Trial {
	var trials []masters.Trial
	for _, p := range permits {
		for _, c := range p.commands {
			if strings.HasSuffix(c[0], "SUBSCRIBE") || c[0] == masters.OurKeys || c[0] == masters.AllChannels ||
				c[0] == "SELECT" && databases == 1 {
				continue
			}
			if c[0] == masters.AllKeys { // a client's key, with a name that hardly any pattern matches
				trials = append(trials, masters.Trial{Name: c[0], Args: []any{c[1], rand.Text()}})
				continue
			}
			var args []any
			for word := range strings.FieldsSeq(c[0] + " " + c[1]) {
				args = append(args, strings.Replace(word, "$", absent, 1))
			}
			trials = append(trials, masters.Trial{Name: c[0], Args: args})
		}
	}
	return trials
}

// missing returns the commands of the permit that the master refuses.
func (p *permit) missing(info *masters.Info) []string {
	var names []string
	for _, c := range p.commands {
		if slices.Contains(info.Missing, c[0]) {
			names = append(names, c[0])
		}
	}
	return names
}

// missingToVote returns the commands that a voter must permit and this master refuses.
func missingToVote(info *masters.Info) []string {
	var names []string
	for _, p := range permits {
		if p.needed {
			names = append(names, p.missing(info)...)
		}
	}
	return names
}

// writeCosts prints the cost of each missing permission.
func writeCosts(w io.Writer, permits []permit, probes []probe) {
	for _, permit := range permits {
		var order []string
		at := make(map[string][]string) // missing commands: addresses of masters
		for _, p := range probes {
			names := strings.Join(permit.missing(&p.info), ", ")
			if names == "" {
				continue
			}
			if at[names] == nil {
				order = append(order, names)
			}
			at[names] = append(at[names], p.addr)
		}
		for _, names := range order {
			fmt.Fprintf(w, "\nWithout %s at %s: %s.\n", names, strings.Join(at[names], ", "), permit.cost)
		}
	}
}
