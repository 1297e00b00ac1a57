package deploy

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"lockproxy/integration/harness"
)

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// answers returns nil if the URL answers with 200.
func answers(url string) error {
	reply, err := http.Get(url)
	if err != nil {
		return err
	}
	_ = reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, reply.Status)
	}
	return nil
}
