package masters

import (
	"context"
	"math"
	"time"
)

// Probe connects, asks a master about itself, and disconnects.
func (m *Redis) Probe(ctx context.Context) (Info, error) {
	conn, err := m.Dial(ctx, 0)
	if err != nil {
		return Info{}, err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()

	clock := &Call{Args: []any{"TIME"}}
	began := time.Now()
	if err := conn.Exec([]*Call{clock}); err != nil {
		return Info{}, err
	}
	took := time.Since(began)
	kill := &Call{Args: []any{"CLIENT", "KILL", "ID", int64(math.MaxInt64)}} // which nobody has; 0 is everybody before Redis 7
	inquiry := NewInquiry()
	if err := conn.Exec(append(inquiry.Calls(), kill)); err != nil {
		return Info{}, err
	}
	info := inquiry.Info()
	info.RoundTrip = took
	if t, ok := ParseTime(clock.Reply); ok {
		info.ClockOffset = t.Sub(began.Add(took / 2))
	}
	if clock.Err != nil {
		info.Missing = append(info.Missing, "TIME")
	}
	if isNoPerm(kill.Err) {
		info.Missing = append(info.Missing, "CLIENT KILL")
	}
	return info, nil
}
