//go:build !race

package integration

// raceBuilt says that the tests run under the race detector; the proxy is then built with it too.
const raceBuilt = false
