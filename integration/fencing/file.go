package fencing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gofrs/flock"
)

// Files is a folder of files on one machine. Beside each file, name.fence has the newest fence. An advisory lock (flock) on
// name.lock makes the comparison and the change one moment among all processes of the machine.
type Files struct{ Dir string }

// Read implements Store.
func (f Files) Read(_ context.Context, name string, fence int64) (value string, err error) {
	err = f.guarded(name, fence, func(path string) error {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		value = string(text)
		return err
	})
	return value, err
}

// Write implements Store. A reader without a fence sees the former file or the new one, never a half of it.
func (f Files) Write(_ context.Context, name, value string, fence int64) error {
	return f.guarded(name, fence, func(path string) error { return replace(path, value) })
}

// guarded calls work with the path of the file, or returns ErrStale. The new fence is on disk before work runs: after a crash
// between the two, the fence is newer than the data, which refuses too much and never too little.
func (f Files) guarded(name string, fence int64, work func(path string) error) error {
	path := filepath.Join(f.Dir, name)
	lock := flock.New(path + ".lock")
	if err := lock.Lock(); err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	newest, err := readFence(path + ".fence")
	switch {
	case err != nil:
		return err
	case fence < newest:
		return ErrStale
	case fence > newest:
		if err := replace(path+".fence", strconv.FormatInt(fence, 10)); err != nil {
			return err
		}
	}
	return work(path)
}

func readFence(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	fence, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s holds no fence: %w", path, err)
	}
	return fence, nil
}

// replace gives the file another content, whole and on disk when it returns.
func replace(path, text string) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // fails after the rename, as it should
	_, err = file.WriteString(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
