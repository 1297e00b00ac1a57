package main

import (
	"encoding/json"
	"os"
	"time"
)

// A measured is one of the figures of a result: its name in JSON, and where it is.
type measured struct {
	name string
	get  func(*result) float64
	set  func(*result, float64)
}

func number(name string, of func(*result) *float64) measured {
	return measured{name, func(r *result) float64 { return *of(r) }, func(r *result, v float64) { *of(r) = v }}
}

func latency(name string, of func(*result) *time.Duration) measured {
	return measured{name + "_ms",
		func(r *result) float64 { return float64(*of(r)) / float64(time.Millisecond) },
		func(r *result, v float64) { *of(r) = time.Duration(v * float64(time.Millisecond)) }}
}

// figuresOf are all figures of a result but the count of its requests.
var figuresOf = []measured{
	number("per_second", func(r *result) *float64 { return &r.perSecond }),
	latency("p50", func(r *result) *time.Duration { return &r.p50 }),
	latency("p99", func(r *result) *time.Duration { return &r.p99 }),
	number("lost", func(r *result) *float64 { return &r.lost }),
	latency("handover_p50", func(r *result) *time.Duration { return &r.handP50 }),
	latency("handover_p99", func(r *result) *time.Duration { return &r.handP99 }),
	number("fewest_to_mean", func(r *result) *float64 { return &r.fewest }),
	number("most_to_mean", func(r *result) *float64 { return &r.most }),
	number("proxy_user_us", func(r *result) *float64 { return &r.spent.proxy.user }),
	number("proxy_system_us", func(r *result) *float64 { return &r.spent.proxy.system }),
	number("master_user_us", func(r *result) *float64 { return &r.spent.master.user }),
	number("master_system_us", func(r *result) *float64 { return &r.spent.master.system }),
	number("client_user_us", func(r *result) *float64 { return &r.spent.client.user }),
	number("client_system_us", func(r *result) *float64 { return &r.spent.client.system }),
}

// values names the figures that were measured.
func (r *result) values() map[string]float64 {
	values := map[string]float64{}
	for _, m := range figuresOf {
		if v := m.get(r); v != 0 {
			values[m.name] = v
		}
	}
	return values
}

// A row is a figure as JSON has it.
type row struct {
	Part     string               `json:"part"`
	What     string               `json:"what"`
	Subject  string               `json:"subject"`
	Clients  int                  `json:"clients"`
	Pipeline int                  `json:"pipeline"`
	Median   map[string]float64   `json:"median"`
	Rounds   []map[string]float64 `json:"rounds"`
}

// writeJSON writes all rows of the tables to the file.
func (r *report) writeJSON(file string, s settings) error {
	rows := make([]row, len(r.figures))
	for i, f := range r.figures {
		rows[i] = row{f.part, f.what, f.subject, f.clients, f.pipeline, f.values(), nil}
		for _, round := range f.rounds {
			rows[i].Rounds = append(rows[i].Rounds, round.values())
		}
	}
	text, err := json.MarshalIndent(map[string]any{
		"machine": machine(), "date": time.Now().UTC().Format(time.DateOnly), "duration": s.duration.String(), "figures": rows, "sizes_kb": r.sizes,
	}, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
