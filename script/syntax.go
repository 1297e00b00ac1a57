package script

// The syntax tree of the subset. A call carries the line that Redis names in an error of its command.

type expr any

type (
	nilExpr    struct{}
	boolExpr   struct{ value bool }
	numberExpr struct{ value float64 }
	stringExpr struct{ value string }
	nameExpr   struct{ name string }

	indexExpr struct{ object, key expr }
	callExpr  struct {
		function expr
		args     []expr
		line     int
	}
	notExpr    struct{ operand expr }
	minusExpr  struct{ operand expr }
	lengthExpr struct{ operand expr }
	binaryExpr struct {
		op          string
		left, right expr
	}
	tableExpr struct {
		items  []expr
		fields []field
	}
)

type field struct {
	name  string
	value expr
}

type stmt any

type (
	localStmt struct {
		names  []string
		values []expr
	}
	assignStmt struct {
		name  string
		value expr
	}
	callStmt struct{ call callExpr }
	ifStmt   struct {
		conditions []expr // if, elseif, …
		blocks     [][]stmt
		otherwise  []stmt
	}
	doStmt     struct{ body []stmt }
	returnStmt struct{ value expr } // nil: no value
	// keysLoop is for index, key in ipairs(KEYS) do body end.
	keysLoop struct {
		index, key string
		body       []stmt
	}
)
