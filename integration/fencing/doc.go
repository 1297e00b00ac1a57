// Package fencing has guards for five kinds of resource: PostgreSQL, SQLite, a file, an HTTP service, and Redis.
//
// A guard keeps the newest fence that its resource was shown, beside the data, and compares each request with that fence:
//
//   - A larger fence is the next holder's. The guard keeps the larger fence, and the request is served.
//   - The same fence is the same holder's. The request is served.
//   - A smaller fence is a former holder's, whose lock has passed to another. The request is refused, with ErrStale.
//
// The comparison, the new fence and the data change at one moment: in one transaction, or under one lock of the resource.
// Reads carry the fence, too. Otherwise a late write may come between the next holder's read and its write, and is lost.
//
// The module is not lockproxy's own, so that lockproxy does not depend on drivers of databases. docs/fencing.md has the same
// guards, for whoever copies them.
package fencing
