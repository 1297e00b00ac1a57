'use strict'

const { isDeepStrictEqual, inspect } = require('node:util')

exports.RELEASE =
  'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end'

// want ends the program with a message unless the two are equal.
exports.want = function want (what, got, expected) {
  if (!isDeepStrictEqual(got, expected)) {
    console.error(`${what}: got ${inspect(got)}, want ${inspect(expected)}`)
    process.exit(1)
  }
}
