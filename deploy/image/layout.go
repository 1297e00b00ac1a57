package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"
)

// The media types of the OCI image specification, 1.1.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// A descriptor names a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

// An image is the configuration of one architecture's image.
type image struct {
	platform
	Created string    `json:"created"`
	Config  runConfig `json:"config"`
	RootFS  rootFS    `json:"rootfs"`
	History []history `json:"history"`
}

type runConfig struct {
	User         string              `json:"User"`
	Env          []string            `json:"Env"`
	Entrypoint   []string            `json:"Entrypoint"`
	ExposedPorts map[string]struct{} `json:"ExposedPorts"`
	Labels       map[string]string   `json:"Labels"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

type history struct {
	Created   string `json:"created"`
	CreatedBy string `json:"created_by"`
}

// A layout collects the blobs of an OCI layout.
type layout struct {
	made   time.Time
	blobs  map[string][]byte // by the digest's hexadecimal digits
	images []descriptor
}

func newLayout(made time.Time) *layout { return &layout{made: made, blobs: map[string][]byte{}} }

// add adds the image of an architecture.
func (l *layout) add(architecture, version string, layer []byte) error {
	var packed bytes.Buffer
	gz, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, err = gz.Write(layer)
	if err := errors.Join(err, gz.Close()); err != nil {
		return err
	}
	linux, created := platform{architecture, "linux"}, l.made.Format(time.RFC3339)
	config, err := l.put(typeConfig, image{
		platform: linux,
		Created:  created,
		Config: runConfig{
			User: "65532:65532",
			// Inside a container, loopback reaches nobody: clients need users, or protected_mode switched off.
			Env:          []string{"PATH=/", "LOCKPROXY_LISTEN=:6380", "LOCKPROXY_ADMIN=:6381"},
			Entrypoint:   []string{"/lockproxy"},
			ExposedPorts: map[string]struct{}{"6380/tcp": {}, "6381/tcp": {}},
			Labels:       map[string]string{"org.opencontainers.image.title": "lockproxy", "org.opencontainers.image.version": version},
		},
		RootFS:  rootFS{"layers", []string{digest(layer)}},
		History: []history{{created, "lockproxy " + version}},
	})
	if err != nil {
		return err
	}
	d, err := l.put(typeManifest, manifest{2, typeManifest, config, []descriptor{l.blob(typeLayer, packed.Bytes())}})
	if err != nil {
		return err
	}
	d.Platform = &linux
	l.images = append(l.images, d)
	return nil
}

// put adds a value as JSON.
func (l *layout) put(mediaType string, value any) (descriptor, error) {
	text, err := json.Marshal(value)
	return l.blob(mediaType, text), err
}

func (l *layout) blob(mediaType string, data []byte) descriptor {
	sum := digest(data)
	l.blobs[sum[len("sha256:"):]] = data
	return descriptor{MediaType: mediaType, Digest: sum, Size: len(data)}
}

// archive returns the layout as a tar. The tag is what engines call the image when they load it.
func (l *layout) archive(tag string) ([]byte, error) {
	all, err := l.put(typeIndex, index{2, typeIndex, l.images})
	if err != nil {
		return nil, err
	}
	all.Annotations = map[string]string{"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": "docker.io/library/lockproxy:" + tag}
	top, err := json.Marshal(index{2, typeIndex, []descriptor{all}})
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`), "index.json": top}
	for sum, data := range l.blobs {
		files["blobs/sha256/"+sum] = data
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), ModTime: l.made, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if err := errors.Join(w.WriteHeader(header), writeAll(w, files[name])); err != nil {
			return nil, err
		}
	}
	err = w.Close()
	return buf.Bytes(), err
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
