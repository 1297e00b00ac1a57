//go:build race

package harness

// RaceBuilt says that this program runs under the race detector; BuildProxy then builds the proxy with it too.
const RaceBuilt = true
