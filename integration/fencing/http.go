package fencing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Header carries the fence of a request.
const Header = "Lock-Fence"

// bodyMax bounds a value in bytes.
const bodyMax = 1 << 20

// Handler serves GET /name and PUT /name from a store. A request without a fence gets 428, the request of a former holder 412.
// The fences are in the store, so that a restart of the service forgets none.
func Handler(store Store) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fence, err := strconv.ParseInt(r.Header.Get(Header), 10, 64)
		if err != nil {
			http.Error(w, "send the fence of your lock as "+Header, http.StatusPreconditionRequired)
			return
		}
		value, err := serve(store, fence, http.MaxBytesReader(w, r.Body, bodyMax), r)
		switch {
		case errors.Is(err, ErrStale):
			http.Error(w, err.Error(), http.StatusPreconditionFailed)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			_, _ = io.WriteString(w, value)
		}
	})
}

func serve(store Store, fence int64, body io.Reader, r *http.Request) (value string, err error) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if r.Method != http.MethodPut {
		return store.Read(r.Context(), name, fence)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return "", err
	}
	return "", store.Write(r.Context(), name, string(text), fence)
}

// Client is a Store behind a Handler.
type Client struct{ URL string }

// Read implements Store.
func (c Client) Read(ctx context.Context, name string, fence int64) (string, error) {
	return c.do(ctx, http.MethodGet, name, "", fence)
}

// Write implements Store.
func (c Client) Write(ctx context.Context, name, value string, fence int64) error {
	_, err := c.do(ctx, http.MethodPut, name, value, fence)
	return err
}

func (c Client) do(ctx context.Context, method, name, body string, fence int64) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.URL+"/"+url.PathEscape(name), strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set(Header, strconv.FormatInt(fence, 10))
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	switch {
	case err != nil:
		return "", err
	case reply.StatusCode == http.StatusPreconditionFailed:
		return "", ErrStale
	case reply.StatusCode != http.StatusOK:
		return "", fmt.Errorf("%s: %s", reply.Status, text)
	}
	return string(text), nil
}
