package quorum

import (
	"errors"
	"testing"
)

// The end of a long cause is cut off, and Redis 6 has the error itself there.
func TestTheCauseOfAScriptsErrorIsThatOfItsCommand(t *testing.T) {
	for text, want := range map[string]string{
		"ERR Error running script (call to f_0e0438139bab1f654da0fe7f2f001ba8b2f869b8): @user_script:1: -OOM command not allowed":                                                            "answered OOM command not allowed",
		"ERR Error running script (call to f_d223ed8c7345b684e8ed044ed472601f536fa58b): @user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.":           "answered OOM command not allowed when used memory > 'maxmemory'.",
		"ERR Error running script (call to f_fd758d1589d044dd850a6f05d52f2eefd27f033f): @user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand": "answered The user executing the script can't run this command or subcommand",
		"OOM command not allowed: -x": "answered OOM command not allowed: -x",
	} {
		if got := failureText(errors.New(text)); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
