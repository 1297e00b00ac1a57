package main

import "runtime/debug"

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

// versionText returns the version, or as much as the build knows of it.
func versionText() string {
	info, ok := debug.ReadBuildInfo()
	switch {
	case version != "":
		return version
	case ok && info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	}
	return "dev"
}
