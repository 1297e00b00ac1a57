// Package deploy tries what operators are given: the chart of deploy/helm, and what make dist builds. It takes minutes when nothing is
// compiled yet, so "make test-deploy" runs it, and "make test" passes over it.
package deploy
