// Image writes an OCI image of lockproxy as an archive, without a container engine:
//
//	go run . -out lockproxy-oci.tar -version 0.1.0 -epoch 1795315200 amd64=bin/amd64 arm64=bin/arm64
//
// The image has one layer: the program, the certificate authorities that Mozilla trusts, and /etc/passwd with the user nonroot. The same
// input gives the same bytes. "podman load" reads the archive, and "skopeo copy oci-archive:FILE docker://…" sends it to a registry.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nonroot is the user of the image, as in distroless images.
const nonroot = 65532

func main() {
	out := flag.String("out", "lockproxy-oci.tar", "the archive to write")
	version := flag.String("version", "dev", "the version, which is also the tag")
	epoch := flag.Int64("epoch", 0, "the time of everything in the image, in seconds since 1970")
	flag.Parse()
	if err := write(*out, *version, time.Unix(*epoch, 0).UTC(), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// write makes the archive of the programs, each as architecture=file.
func write(out, version string, made time.Time, programs []string) error {
	if len(programs) == 0 {
		return errors.New("name the programs: amd64=FILE arm64=FILE")
	}
	l := newLayout(made)
	for _, program := range programs {
		architecture, file, ok := strings.Cut(program, "=")
		if !ok {
			return fmt.Errorf("%q is not architecture=file", program)
		}
		binary, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		layer, err := layerOf(binary, made)
		if err != nil {
			return err
		}
		if err := l.add(architecture, version, layer); err != nil {
			return err
		}
	}
	archive, err := l.archive(version)
	if err != nil {
		return err
	}
	return os.WriteFile(out, archive, 0o644) //nolint:gosec // an archive that others read
}

// layerOf returns the one layer as an uncompressed tar.
func layerOf(binary []byte, made time.Time) ([]byte, error) {
	user := fmt.Sprintf("nonroot:x:%d:%d:nonroot:/:/sbin/nologin\n", nonroot, nonroot)
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, entry := range []struct {
		name string
		mode int64
		data []byte
	}{
		{"etc/", 0o755, nil},
		{"etc/group", 0o644, fmt.Appendf(nil, "nonroot:x:%d:\n", nonroot)},
		{"etc/passwd", 0o644, []byte(user)},
		{"etc/ssl/", 0o755, nil},
		{"etc/ssl/certs/", 0o755, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, authorities()},
		{"lockproxy", 0o755, binary},
		{"tmp/", 0o1777, nil},
	} {
		header := &tar.Header{Name: entry.name, Mode: entry.mode, Size: int64(len(entry.data)), ModTime: made, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if strings.HasSuffix(entry.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := errors.Join(w.WriteHeader(header), writeAll(w, entry.data)); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return buf.Bytes(), err
}

func writeAll(w *tar.Writer, data []byte) error {
	_, err := w.Write(data)
	return err
}

// authorities returns the certificates of the authorities in PEM. Those that Mozilla trusts under a condition of its own are left out.
func authorities() []byte {
	var all []byte
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			all = append(all, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
		}
	}
	return all
}
