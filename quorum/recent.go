package quorum

// recent remembers which entry took which hold on one lane, for the last few milliseconds of the master's clock: time
// alone does not tell two keys apart that were set in the same millisecond. It belongs to the lane's loop.
type recent struct {
	young, old map[hold]*entry
	turned     int64 // when old was young, ms on the master's clock
}

// recentFor is how long an entry is remembered at least, ms.
const recentFor = 5

// turn forgets what is older than two generations.
func (r *recent) turn(now int64) {
	if now >= r.turned && now < r.turned+recentFor {
		return
	}
	r.young, r.old = r.old, r.young
	clear(r.young)
	r.turned = now
}

// took notes that en set the key of h where none was. So the key of any entry before it is gone, and is not to be
// undone.
func (r *recent) took(h hold, en *entry) {
	if last := r.last(h); last != nil && last != en {
		last.pass()
	}
	if r.young == nil {
		r.young = make(map[hold]*entry)
	}
	r.young[h] = en
}

// last returns the latest entry that took h, if that was recently.
func (r *recent) last(h hold) *entry {
	if en := r.young[h]; en != nil {
		return en
	}
	return r.old[h]
}

// pass says that no key of this entry is there, or that it cannot be told from another's: it is not to be undone.
func (en *entry) pass() {
	en.round.mu.Lock()
	en.passed = true
	en.round.mu.Unlock()
}

func (en *entry) hasPassed() bool {
	en.round.mu.Lock()
	defer en.round.mu.Unlock()
	return en.passed
}
