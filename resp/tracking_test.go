package resp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"lockproxy/resp/upstream"
)

func invalidated(keys ...string) string {
	if len(keys) == 0 {
		return ">2\r\n$10\r\ninvalidate\r\n_\r\n"
	}
	return ">2\r\n$10\r\ninvalidate\r\n" + cmdline(keys...)
}

// dialTracking is a client that caches what it says that it does.
func (r *rig) dialTracking() *client {
	c := r.dial()
	c.ask("HELLO", "3")
	c.send(words("CLIENT TRACKING ON OPTIN"))
	c.want("+OK\r\n")
	return c
}

// Each passage is sent in one go; what is behind the bar is the whole of the replies.
var trackedPassages = []struct{ requests, want string }{
	{"CLIENT CACHING YES ; MULTI ; PTTL k ; GET k ; EXEC ; GET k", "+OK +OK +QUEUED +QUEUED *2 :-2 _ [k] _"},
	{"CLIENT CACHING YES ; CLIENT GETREDIR ; MULTI ; PTTL b ; PTTL a ; MGET b a ; EXEC ; PING", "+OK :0 +OK +QUEUED +QUEUED +QUEUED *3 :-2 :-2 *2 _ _ [b a] +PONG"},
	{"CLIENT CACHING YES ; MULTI ; GET k ; SELECT 0 ; EXEC ; MULTI ; GET k ; EXEC", "+OK +OK +QUEUED +QUEUED *2 _ +OK [k] +OK +QUEUED *1 _"},
	{"CLIENT CACHING YES ; MULTI ; SET k v EX 10 ; SELECT 0 ; EXEC", "+OK +OK +QUEUED +QUEUED *2 +OK +OK"},
	{"CLIENT CACHING YES ; MULTI ; GET k ; DISCARD ; GET k", "+OK +OK +QUEUED +OK [k] _"},
	{"CLIENT CACHING YES ; MULTI ; GET k ; NOSUCH ; EXEC ; GET k", "+OK +OK +QUEUED -ERR_unknown_command_'NOSUCH',_with_args_beginning_with:_ -EXECABORT_Transaction_discarded_because_of_previous_errors. [k] _"},
	{"CLIENT CACHING YES ; MULTI ; EVAL return{KEYS[1]} 2 k ; EXEC", "+OK +OK +QUEUED *1 -ERR_Number_of_keys_can't_be_greater_than_number_of_args"},
	{"CLIENT CACHING YES ; PING ; GET k", "+OK +PONG _"},
	{"CLIENT CACHING YES ; CLIENT TRACKING OFF ; GET k", "+OK +OK _"},
	{"CLIENT CACHING YES ; HELLO 2 ; CLIENT CACHING YES ; MULTI ; GET k ; EXEC", "+OK hello +OK +OK +QUEUED *1 $-1"},
	{"CLIENT CACHING YES ; RESET ; GET k ; CLIENT CACHING YES", "+OK +RESET $-1 -ERR_CLIENT_CACHING_can_be_called_only_when_the_client_is_in_tracking_mode_with_OPTIN_or_OPTOUT_mode_enabled"},
	{"CLIENT CACHING YES ; MULTI ; GET " + strings.Repeat("k", trackedMax) + " ; EXEC", "+OK +OK +QUEUED *1 _ []"},
	{"CLIENT CACHING YES ; MULTI ; GET k ; GET " + strings.Repeat("k", trackedMax) + " ; EXEC", "+OK +OK +QUEUED +QUEUED *2 _ _ []"},
	{"CLIENT CACHING YES ; GET k ; MULTI ; PING ; SET k v ; CLIENT TRACKING OFF ; GET k", "+OK refused refused +PONG refused +OK _"},
	{"CLIENT CACHING YES ; NOSUCH ; CLIENT CACHING YES ; MULTI ; RESET ; GET k", "+OK refused +OK refused +RESET $-1"},
	{"MULTI ; CLIENT CACHING YES ; PTTL k ; GET k ; EXEC", "+OK -ERR_lockproxy_does_not_run_'client|caching'_inside_MULTI;_send_it_before_MULTI_or_after_EXEC +QUEUED +QUEUED -EXECABORT_Transaction_discarded_because_of_previous_errors."},
}

const refusedToCache = "-ERR lockproxy supports CLIENT CACHING YES only before MULTI; disable client side caching in the client"

// repliesOf writes out such replies: [a b] is the push that says that a and b are invalid, [] that everything is. A _ within
// a word is a blank.
func repliesOf(text string) string {
	var b strings.Builder
	for text != "" {
		var word string
		if rest, isPush := strings.CutPrefix(text, "["); isPush {
			word, text, _ = strings.Cut(rest, "]")
			b.WriteString(invalidated(strings.Fields(word)...))
			text = strings.TrimPrefix(text, " ")
			continue
		}
		word, text, _ = strings.Cut(text, " ")
		if word == "refused" {
			word = refusedToCache
		}
		if len(word) > 1 {
			word = strings.ReplaceAll(word, "_", " ")
		}
		b.WriteString(word + "\r\n")
	}
	return b.String()
}

func TestWhatAClientCachesIsInvalidatedAtOnce(t *testing.T) {
	for _, p := range trackedPassages {
		t.Run(fmt.Sprintf("%.60s", p.requests), func(t *testing.T) {
			r := newRig(t, Config{})
			r.engine.async = true
			playTracked(t, r, p.requests, p.want)
		})
	}
}

func playTracked(t *testing.T, r *rig, requests, want string) {
	t.Helper()
	c := r.dialTracking()
	var raw strings.Builder
	for request := range strings.SplitSeq(requests, " ; ") {
		raw.WriteString(words(request))
	}
	c.send(raw.String() + words("ECHO end"))
	want = repliesOf(want + " $3 end")
	if before, after, has := strings.Cut(want, "hello\r\n"); has {
		c.want(before)
		c.reply()
		want = after
	}
	c.want(want)
}

// A push is no part of a reply, and does not come before the one that it is about, however late that is.
func TestAnInvalidationComesBehindTheReply(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dialTracking()
	arrived := r.engine.hold()
	marked := words("CLIENT CACHING YES") + words("MULTI") + words("GET a") + words("EXEC")
	c.send(marked + words("GET b") + marked)
	for range 2 {
		<-arrived
	}
	c.want("+OK\r\n+OK\r\n+QUEUED\r\n")
	r.engine.release(1)
	r.engine.release(0)
	<-arrived
	r.engine.release(0)
	told := "*1\r\n_\r\n" + invalidated("a")
	c.want(told + "_\r\n+OK\r\n+OK\r\n+QUEUED\r\n" + told)
}

func TestInvalidationsThatAreNotReadAreBounded(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{Output: 64 << 10}})
	r.engine.hold()
	c := r.dialTracking()
	marked := words("CLIENT CACHING YES") + words("MULTI") + "GET %d" + strings.Repeat("k", trackedMax/2) + "\r\n" + words("EXEC")
	go func() {
		for i := range 1000 { // no reply is ready, but their invalidations are
			if _, err := fmt.Fprintf(c.Conn, marked, i); err != nil {
				return
			}
		}
	}()
	waitFor(t, "the client was not cut off", func() bool { return r.server.Stats().Clients == 0 })
	r.engine.releaseAll()
}

func TestWhoTracksIsListed(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dialTracking()
	for request, want := range map[string]string{"CLIENT INFO": " flags=t ", "CLIENT LIST": " redir=0 ", "INFO clients": "tracking_clients:1\r\n"} {
		if got := c.ask(strings.Fields(request)...); !strings.Contains(got, want) {
			t.Errorf("%s: %q has no %q", request, got, want)
		}
	}
	c.send(words("RESET"))
	c.want("+RESET\r\n")
	if got := c.ask("CLIENT", "INFO"); !strings.Contains(got, " flags=N ") || !strings.Contains(got, " redir=-1 ") {
		t.Error(got)
	}
}

// In the other modes a client may wait for an invalidation, and would ask again at each.
func TestOtherModesOfTrackingAreRefused(t *testing.T) {
	for _, request := range []string{"ON", "ON OPTOUT", "ON OPTIN OPTOUT", "ON BCAST", "ON OPTIN BCAST", "ON OPTIN REDIRECT 1", "ON OPTIN PREFIX x", "ON NOLOOP"} {
		c := newRig(t, Config{}).dial()
		c.ask("HELLO", "3")
		c.send(words("CLIENT TRACKING " + request))
		c.want("-ERR lockproxy supports CLIENT TRACKING only as ON OPTIN, over RESP3; disable client side caching in the client\r\n")
		c.send(words("CLIENT TRACKINGINFO"))
		c.want("%3\r\n$5\r\nflags\r\n~1\r\n$3\r\noff\r\n$8\r\nredirect\r\n:-1\r\n$8\r\nprefixes\r\n*0\r\n")
	}
	c := newRig(t, Config{}).dial()
	c.send(words("CLIENT TRACKING ON OPTIN"))
	c.want("-ERR lockproxy supports CLIENT TRACKING only as ON OPTIN, over RESP3; disable client side caching in the client\r\n")
}

func TestWhatTheUpstreamRepliesIsInvalidatedToo(t *testing.T) {
	redis := startRedis(t)
	for _, p := range []struct{ requests, want string }{
		{"CLIENT CACHING YES ; MULTI ; PTTL k ; GET k ; EXEC ; GET k", "+OK +OK +QUEUED +QUEUED *2 :-2 _ [k] _"},
		{"CLIENT CACHING YES ; MULTI ; LLEN l ; SINTER a b ; EXEC ; GET k", "+OK +OK +QUEUED +QUEUED *2 :0 ~0 [l a b] _"},
		{"CLIENT CACHING YES ; MULTI ; SELECT 0 ; LLEN l ; EXEC", "+OK +OK +QUEUED +QUEUED *2 +OK :0 [l]"},
		{"GET k ; CLIENT CACHING YES ; MULTI ; GET lock:1 ; EXEC ; GET k", "_ +OK +OK +QUEUED *1 _ [lock:1] _"},
		{"CLIENT CACHING YES ; MULTI ; INCRBY n 0 ; EXEC", "+OK +OK +QUEUED *1 :0"},
		{"CLIENT CACHING YES ; MULTI ; OBJECT FREQ k ; EXEC", "+OK +OK +QUEUED *1 _ [k]"},
		{"CLIENT CACHING YES ; MULTI ; XREAD STREAMS k 0 ; EXEC ; GET k", "+OK +OK +QUEUED *1 _ [] _"},
		{"CLIENT CACHING YES ; MULTI ; EVAL return{KEYS[1]} 1 k ; EXEC", "+OK +OK +QUEUED *1 *1 $1 k [k]"},
		{"CLIENT CACHING YES ; MULTI ; FCALL f 1 k ; EXEC", "+OK +OK +QUEUED *1 -ERR_Function_not_found []"},
		{"WATCH k ; CLIENT CACHING YES ; MULTI ; GET k ; EXEC", "+OK +OK +OK +QUEUED *1 _ [k]"},
		{"CLIENT CACHING YES ; PTTL k ; GET k", "+OK refused refused"},
		{"MULTI ; LLEN l ; CLIENT CACHING YES ; GET k ; EXEC ; GET k", "+OK +QUEUED -ERR_lockproxy_does_not_run_'client|caching'_inside_MULTI;_send_it_before_MULTI_or_after_EXEC +QUEUED -EXECABORT_Transaction_discarded_because_of_previous_errors. _"},
	} {
		t.Run(fmt.Sprintf("%.60s", p.requests), func(t *testing.T) {
			u := upstream.New(upstream.Options{Addr: redis})
			t.Cleanup(u.Close)
			r := newRig(t, Config{Upstream: u, LockKeys: []string{"lock:*"}})
			playTracked(t, r, p.requests, p.want)
		})
	}
}

// What a real Redis sends when a key has changed is what is sent here at once.
func TestAnInvalidationLooksLikeRediss(t *testing.T) {
	conn, err := net.Dial("tcp", startRedis(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patienceMax))
	for _, request := range []string{"HELLO 3", "CLIENT TRACKING ON OPTIN", "CLIENT CACHING YES", "GET k", "SET k v", "ECHO end"} {
		if _, err := io.WriteString(conn, words(request)); err != nil {
			t.Fatal(err)
		}
	}
	var all strings.Builder
	for b := bufio.NewReader(conn); !strings.HasSuffix(all.String(), "$3\r\nend\r\n"); {
		c, err := b.ReadByte()
		if err != nil {
			t.Fatal(err)
		}
		all.WriteByte(c)
	}
	if want := "+OK\r\n+OK\r\n_\r\n+OK\r\n" + invalidated("k") + "$3\r\nend\r\n"; !strings.HasSuffix(all.String(), want) {
		t.Errorf("it sent %q", all.String())
	}
}
