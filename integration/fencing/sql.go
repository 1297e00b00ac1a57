package fencing

import (
	"context"
	"database/sql"
	"errors"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx" of PostgreSQL
	_ "modernc.org/sqlite"             // the driver "sqlite"
)

// OpenPostgres connects to PostgreSQL, as postgres://user@host/database.
func OpenPostgres(url string) (*sql.DB, error) { return sql.Open("pgx", url) }

// OpenSQLite opens a file of SQLite. A transaction takes the file's write lock as it begins, and waits for the lock: a
// transaction that has read, and only then wants to write, would be refused where another has written meanwhile.
func OpenSQLite(path string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(60000)")
}

// Rows is a table in which each row has the fence of its own lock. The same text serves PostgreSQL and SQLite.
type Rows struct{ DB *sql.DB }

// The statements of Rows. Each is one statement, so each is one moment.
const (
	rowsTable = `CREATE TABLE accounts (name text PRIMARY KEY, value text NOT NULL DEFAULT '', fence bigint NOT NULL DEFAULT 0)`
	rowsRead  = `UPDATE accounts SET fence = $2 WHERE name = $1 AND fence <= $2 RETURNING value`
	rowsWrite = `UPDATE accounts SET fence = $2, value = $3 WHERE name = $1 AND fence <= $2`
)

// Create makes the table, with a row for each name.
func (r Rows) Create(ctx context.Context, names ...string) error {
	_, err := r.DB.ExecContext(ctx, rowsTable)
	for _, name := range names {
		if err == nil {
			_, err = r.DB.ExecContext(ctx, `INSERT INTO accounts (name) VALUES ($1)`, name)
		}
	}
	return err
}

// Read implements Store. The row must be there.
func (r Rows) Read(ctx context.Context, name string, fence int64) (value string, err error) {
	err = r.DB.QueryRowContext(ctx, rowsRead, name, fence).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrStale
	}
	return value, err
}

// Write implements Store. The row must be there.
func (r Rows) Write(ctx context.Context, name, value string, fence int64) error {
	return demandOne(r.DB.ExecContext(ctx, rowsWrite, name, fence, value))
}

// demandOne turns a statement that changed no row into ErrStale.
func demandOne(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = ErrStale
	}
	return err
}

// Transactions is a database in which one lock guards any number of rows and tables. The fences have a table of their own, and
// every transaction begins with the comparison. The same text serves PostgreSQL and SQLite.
type Transactions struct{ DB *sql.DB }

// The statements of Transactions. transactionsCompare changes no row if the fence is stale. Otherwise it keeps other
// transactions of the same lock waiting until this transaction has ended.
const (
	transactionsTables = `CREATE TABLE fences (lock text PRIMARY KEY, newest bigint NOT NULL);
		CREATE TABLE entries (name text PRIMARY KEY, value text NOT NULL)`
	transactionsCompare = `INSERT INTO fences (lock, newest) VALUES ($1, $2)
		ON CONFLICT (lock) DO UPDATE SET newest = excluded.newest WHERE fences.newest <= excluded.newest`
)

// Create makes the tables.
func (t Transactions) Create(ctx context.Context) error {
	_, err := t.DB.ExecContext(ctx, transactionsTables)
	return err
}

// Do runs work in a transaction that is guarded by the lock. It returns ErrStale to a former holder, and work does not run.
func (t Transactions) Do(ctx context.Context, lock string, fence int64, work func(*sql.Tx) error) error {
	tx, err := t.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	if err := demandOne(tx.ExecContext(ctx, transactionsCompare, lock, fence)); err != nil {
		return err
	}
	if err := work(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Read implements Store.
func (t Transactions) Read(ctx context.Context, name string, fence int64) (value string, err error) {
	err = t.Do(ctx, name, fence, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT value FROM entries WHERE name = $1`, name).Scan(&value)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return value, err
}

// Write implements Store.
func (t Transactions) Write(ctx context.Context, name, value string, fence int64) error {
	return t.Do(ctx, name, fence, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO entries (name, value) VALUES ($1, $2)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, value)
		return err
	})
}
