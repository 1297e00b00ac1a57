package sim

import "testing"

func TestASeedIsReadAsItIsWritten(t *testing.T) {
	for text, seed := range map[string]Seed{
		"17":                         {Number: 17},
		"18446744073709551615":       {Number: 1<<64 - 1},
		"spoken/0":                   {Classes: Spoken},
		"fenced+voted+operated/4711": {Classes: Fenced | Voted | Operated, Number: 4711},
	} {
		var read Seed
		if err := read.UnmarshalText([]byte(text)); err != nil || read != seed || seed.String() != text {
			t.Errorf("%q was read as %v, %v, and is written as %q", text, read, err, seed)
		}
	}
	for _, text := range []string{"", "x", "-1", "fenced", "fenced/", "/1", "fenced+/1", "other/1", "1/fenced", "18446744073709551616"} {
		if err := new(Seed).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}
