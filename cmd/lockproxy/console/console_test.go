package console

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockproxy/quorum"
	"lockproxy/quorum/gate"
	"lockproxy/resp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fake is an engine of which everything is known. Its locks are asked for by name.
type fake struct {
	searches int
	silent   bool // Locks never answers
	found    quorum.FoundLocks
	view     quorum.Viewed
}

func (f *fake) Databases() []quorum.DatabaseStatus {
	return []quorum.DatabaseStatus{{DB: 0, Masters: []quorum.MasterStatus{
		{Addr: "a:1", State: quorum.Clean},
		{Addr: "b:1", State: quorum.Quarantined, Cause: "<b>new</b>", Left: 13 * time.Second},
		{Addr: "d:1", State: quorum.Suspect, Cause: "has a clock that jumped by 3s"},
		{Addr: "c:1", State: quorum.Disconnected, Cause: "connection refused"},
	}}}
}

func (f *fake) Stats() quorum.Stats { return quorum.Stats{Acquired: 4321} }

func (f *fake) Locks(req quorum.LocksRequest, done func(quorum.FoundLocks)) {
	f.searches++
	if !f.silent {
		done(f.found)
	}
}

func (f *fake) Views(_ quorum.Key, done func(quorum.Viewed)) { done(f.view) }

func (f *fake) Fence(_ quorum.Key, done func(quorum.FenceView)) { done(quorum.FenceView{Fence: 77}) }

type fakeFront struct {
	gates  *gate.Gates
	holder *resp.Client // of every lock
}

func (fakeFront) Stats() resp.Stats    { return resp.Stats{Clients: 98765} }
func (f fakeFront) Gates() *gate.Gates { return f.gates }
func (fakeFront) Hottest(int) (refused, waited []resp.HotKey) {
	return []resp.HotKey{{Key: quorum.Key{Name: "<b>refused"}, PerMinute: 12.34}}, []resp.HotKey{{Key: quorum.Key{Name: "waited"}, PerMinute: 56.78}}
}

func (f fakeFront) Holders() func(quorum.Key, string) resp.Client {
	return func(quorum.Key, string) resp.Client { return *f.holder }
}

func newConsole(f *fake) *Console { return newConsoleOf(f, &resp.Client{}) }

func newConsoleOf(f *fake, holder *resp.Client) *Console {
	gates := gate.New(nil, nil, 3, nil)
	return New(f, fakeFront{gates, holder}, Options{Version: "v9", Databases: 16, Warnings: &Warnings{}})
}

func get(c http.Handler, url string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, url, nil))
	return w
}

func TestAPageShowsWhatIsKnown(t *testing.T) {
	f := &fake{found: quorum.FoundLocks{Stop: quorum.StopCount, Locks: []quorum.FoundLock{{Name: "job:7", Type: "string", Token: "worker-12", Fence: 55, TTL: time.Minute}}}}
	body := get(newConsole(f), "/").Body.String()
	for _, want := range []string{
		"v9", "a:1", "clean", "quarantined", "suspect", "has a clock that jumped by 3s", "at most 13s", "connection refused", "No lock can be had: NOQUORUM", "4321", "98765",
		`<a href="lock?db=0&amp;name=job%3a7">job:7</a>`, "worker-12", "55", "1m0s", "There are more",
		"&lt;b&gt;refused", "12.3", "waited", "56.8",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
}

func TestWhateverIsInANameIsText(t *testing.T) {
	evil := "<script>alert(1)</script>\x00\xff'\"&"
	f := &fake{found: quorum.FoundLocks{Locks: []quorum.FoundLock{{Name: evil, Token: evil, Type: "string"}}}}
	f.view = quorum.Viewed{State: quorum.LockHeld, Masters: []quorum.MasterView{{Addr: evil, Value: evil, Reason: evil, Answered: true, Type: evil}}}
	c := newConsoleOf(f, &resp.Client{Addr: evil, Name: evil, Library: evil, User: evil})
	slog.New(c.opt.Warnings.Handler(slog.DiscardHandler)).Warn(evil, "key", evil)
	for _, url := range []string{"/", "/?match=%3Cscript%3E%22", "/lock?name=%3Cscript%3E%00%ff%22"} {
		w := get(c, url)
		if body := w.Body.String(); w.Code != http.StatusOK || strings.Contains(body, "<script>") || strings.Contains(body, "<b>") || strings.ContainsRune(body, 0) {
			t.Errorf("%s: %d %s", url, w.Code, body)
		}
		if policy := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; style-src 'self'; script-src 'self';") {
			t.Errorf("%s may load: %s", url, policy)
		}
	}
}

func TestBadQuestionsAreTold(t *testing.T) {
	for url, want := range map[string]string{
		"/?db=16":                             "db: give a number from 0 to 15",
		"/?db=-1":                             "db: give a number from 0 to 15",
		"/?db=x":                              "db: give a number from 0 to 15",
		"/lock":                               "name: give the name of a lock",
		"/lock?name=lockproxy:canary":         "name: give the name of a lock",
		"/?match=" + strings.Repeat("a", 513): "match: the pattern is longer than 512 bytes",
	} {
		if w := get(newConsole(&fake{}), url); w.Code != http.StatusBadRequest || !strings.HasPrefix(w.Body.String(), want) {
			t.Errorf("%.40s: %d %s, want %s", url, w.Code, w.Body, want)
		}
	}
}

func TestManyBrowsersMakeOneSearch(t *testing.T) {
	f := &fake{}
	c := newConsole(f)
	for range 5 {
		get(c, "/?match=a*")
	}
	get(c, "/?match=b*")
	if f.searches != 2 {
		t.Errorf("%d searches", f.searches)
	}
}

func TestAPageComesThoughMastersAreSilent(t *testing.T) {
	f := &fake{silent: true}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w := httptest.NewRecorder()
	newConsole(f).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	if body := w.Body.String(); !strings.Contains(body, errBusy.Error()) || !strings.Contains(body, "a:1") {
		t.Error(body)
	}
}

func TestALockHasAPage(t *testing.T) {
	f := &fake{view: quorum.Viewed{State: quorum.LockHeld, View: quorum.View{Exists: true, Type: "string", Value: "me", TTL: 90 * time.Second}, Masters: []quorum.MasterView{
		{Addr: "a:1", Answered: true, Type: "string", Value: "me", TTL: time.Minute, Counts: true},
		{Addr: "b:1", Reason: "does not answer"},
	}}}
	body := get(newConsole(f), "/lock?name=job:7&db=3").Body.String()
	for _, want := range []string{"job:7", "held", "1m30s", "77", "did not answer", "does not answer", "<dd>3</dd>"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
}

// Both pages name the client of the holder, and say where no client is known.
func TestTheClientOfALockIsNamed(t *testing.T) {
	f := &fake{found: quorum.FoundLocks{Locks: []quorum.FoundLock{{Name: "job:7", Type: "string", Token: "worker-12"}}}}
	f.view = quorum.Viewed{State: quorum.LockHeld, View: quorum.View{Value: "worker-12"}}
	for _, c := range []struct {
		holder         resp.Client
		onTable, alone []string
	}{
		{resp.Client{}, []string{`<td data-of="client"></td>`}, []string{"<dd>not known here: connected to another proxy, or gone</dd>"}},
		{resp.Client{Addr: "10.0.0.9:4711", User: "default"},
			[]string{`<td data-of="client"><span>10.0.0.9:4711 <small>user default</small></span></td>`},
			[]string{"<dt>client</dt><dd>10.0.0.9:4711</dd>", "<dt>user</dt><dd>default</dd>"}},
		{resp.Client{Addr: "10.0.0.9:4711", Name: "billing-3", Library: "redis-py 5.0.1", User: "billing"},
			[]string{`<td data-of="client"><span>billing-3, 10.0.0.9:4711 <small>user billing, redis-py 5.0.1</small></span></td>`},
			[]string{"<dt>name</dt><dd>billing-3</dd>", "<dt>library</dt><dd>redis-py 5.0.1</dd>", "<dt>user</dt><dd>billing</dd>"}},
	} {
		console := newConsoleOf(f, &c.holder)
		for url, want := range map[string][]string{"/": c.onTable, "/lock?name=job:7": c.alone} {
			body := get(console, url).Body.String()
			for _, text := range want {
				if !strings.Contains(body, text) {
					t.Errorf("%s of %+v lacks %q: %s", url, c.holder, text, body)
				}
			}
		}
	}
	f.view.State = quorum.LockFree
	if body := get(newConsoleOf(f, &resp.Client{Addr: "10.0.0.9:4711"}), "/lock?name=job:7").Body.String(); strings.Contains(body, "4711") {
		t.Errorf("a free lock has a client: %s", body)
	}
}

func TestTheLastWarningsAreKept(t *testing.T) {
	var handed strings.Builder
	w := &Warnings{}
	log := slog.New(w.Handler(slog.NewTextHandler(&handed, &slog.HandlerOptions{Level: slog.LevelError}))).With("proxy", 1)
	for i := range linesKept + 10 {
		log.Warn("a warning", "n", i)
	}
	log.Info("no warning")
	log.Warn(resp.LostMessage, "key", "job:7")
	lost, all := w.last()
	if len(all) != linesKept || all[1].Text != fmt.Sprintf("a warning proxy=1 n=%d", linesKept+9) {
		t.Errorf("%d lines, of which the second is %v", len(all), all[1])
	}
	if len(lost) != 1 || lost[0].Text != resp.LostMessage+" proxy=1 key=job:7" {
		t.Errorf("lost: %v", lost)
	}
	if handed.Len() > 0 {
		t.Errorf("log_level does not count any more: %s", &handed)
	}
}

func TestAChartShowsTheLastHour(t *testing.T) {
	var h history
	begin := time.Now()
	for i := range samplesMax + 100 {
		h.note(begin.Add(time.Duration(i)*sampleEvery), quorum.Stats{Acquired: uint64(i * 50), Refused: uint64(i)})
	}
	now := begin.Add(time.Duration(samplesMax+99) * sampleEvery)
	charts := h.charts(now)
	acquired := charts[0].Lines[0]
	points := strings.Fields(acquired.Points)
	if len(points) != samplesMax-1 || charts[0].Top != "5" || charts[0].Span != time.Hour || acquired.Now != "5" {
		t.Errorf("%d points up to %s, over %v, now %s", len(points), charts[0].Top, charts[0].Span, acquired.Now)
	}
	if first, last := points[0], points[len(points)-1]; first != "1.7,0.0" || last != "600.0,0.0" {
		t.Errorf("the line goes from %s to %s", first, last)
	}
	if refused := strings.Fields(charts[0].Lines[1].Points)[0]; refused != "1.7,98.0" {
		t.Errorf("refused begins at %s", refused)
	}
}
