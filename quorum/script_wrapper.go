package quorum

import (
	_ "embed"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"lockproxy/quorum/vote"
)

// A client's script runs inside a wrapper of ours, in one EVAL, so that a master tells the script's effects with the script's
// reply. The client's text becomes a function that sees a `redis` of ours. Each of its calls goes through a guard. The guard
// stops calls on which masters cannot vote, and notes the content of each key before the first write. Afterwards the written
// keys are compared with the noted contents.
//
//	KEYS  the client's
//	ARGV  the client's, and after them: mode, drift factor, fixed part of the addition to a TTL in ms, ttl_max in ms,
//	      the label of published messages, the field to read of KEYS[1] at the end, or nothing, and the latest time that the
//	      master's clock may show when the script begins, in ms, or nothing
//
// mode has an r for a script that may not write, a d for a script that may also touch keys whose names begin with one of its
// KEYS and a colon, a q for a script with a queue in KEYS[2] and KEYS[3], and the number of the database. vote.Parse reads
// the reply:
//
//	{the reply, encoded; the field; and for each changed key:
//	 name, effect, TTL set in ms or 0, expiry as left, digest as left or deleted, value before, expiry before}
//
// A key to which the script gives a TTL is kept for longer, as every key of ours is (Config.kept). A key that the script
// leaves without a TTL gets ttl_max. A TTL that the script reads is told without the addition. If the guard stops the script,
// all its writes are put back at once, and the reply is the guard's error.
//
// The client's text begins on the first line, so that errors name the right lines.
const wrapperHead = `local __lockproxy,redis,server,_G,load,loadstring,getfenv,setfenv,getmetatable={redis,false,_G},{} `

//go:embed script_wrapper.lua
var wrapperLua string

//go:embed script_own.lua
var ownLua string

var wrapperOwn = shorten(ownLua)

// wrapperOwnSetter lets wrapperOwn set the functions that the client's text sees. The wrapper itself goes on with Lua's own
// functions.
const wrapperOwnSetter = `local function lend(m) math,tostring,pairs,collectgarbage,gcinfo,os=m.math,m.tostring,m.pairs,m.collectgarbage,m.gcinfo,m.os end
local math,tostring,pairs=__lockproxy[3].math,__lockproxy[3].tostring,__lockproxy[3].pairs
`

// overError is a master's answer to a reader that extends a lock after its own hold there is over, while other readers keep
// the lock.
const overError = "NOQUORUM the hold of the caller has run out here, and others alone keep the lock; unlock it, and take it anew"

// scriptMax is the number of bytes that a script may read, together with the bytes of the keys that it changes.
const scriptMax = 4 << 20

// wrapperTail is the text that is sent after the client's text.
var wrapperTail = shorten(strings.NewReplacer("--[[VALUE]]", luaValue, "@BELL@", BellPrefix, "@HORIZON@", horizonKey,
	"@SCRIPTMAX@", strconv.Itoa(scriptMax), "@COMMANDS@", " "+strings.Join(votable, " ")+" ", "@LATE@", lateError, "@OVER@", overError).Replace(wrapperLua))

// Parts of the wrapper that only few texts can notice. Other texts are sent without these parts.
const (
	wrapperSetResp = `
redis.setresp = function(...)
  real.setresp(...)
  three = (...) == 3
end`
	wrapperGlobals = `
load = function() refuse('it compiles another script') end
getfenv = function() refuse('it looks around its wrapper') end
getmetatable = function(value)
  if type(value) ~= 'table' then refuse('it looks for what all scripts share') end
  return all.getmetatable(value)
end
loadstring, setfenv = load, getfenv
_G = {redis = redis, server = redis, load = load, loadstring = load, getfenv = getfenv, setfenv = getfenv, getmetatable = getmetatable}
_G._G = _G
for name, value in pairs(mine) do _G[name] = name ~= 'os' and value or rawget(all, 'os') and value or nil end
setmetatable(_G, {__index = all, __newindex = all, __metatable = false})`
)

var quotedWord = regexp.MustCompile(`["']([A-Za-z_]+)["']`)

// globalNames are the names by which a text could reach around its wrapper.
var globalNames = regexp.MustCompile(`_G|load|[gs]etfenv|getmetatable`)

// ownNames are the names of functions that differ between processes. plainMath has the functions of math that do not differ.
var (
	ownNames  = regexp.MustCompile(`\b(math|tostring|pairs|collectgarbage|gcinfo|os)\b`)
	plainMath = regexp.MustCompile(`\bmath\.(abs|ceil|floor|fmod|huge|max|min|modf|pow|sqrt)\b`)
)

// wrap returns the text that masters run for a client's text. The rows of the commands that the client's text names are in a
// table of their own, for speed.
func wrap(text string) *lua {
	var likely []string
	for _, found := range quotedWord.FindAllStringSubmatch(text, -1) {
		for _, row := range votable {
			if name, how, _ := strings.Cut(row, "="); name == strings.ToLower(found[1]) {
				likely = append(likely, "['"+found[1]+"']='"+how+"'")
			}
		}
	}
	slices.Sort(likely)
	setresp, globals, own, names, setter := "", "", "", "", ""
	if strings.Contains(text, "setresp") {
		setresp = wrapperSetResp
	}
	if globalNames.MatchString(text) {
		globals = wrapperGlobals
	}
	if globals != "" || ownNames.MatchString(plainMath.ReplaceAllString(text, "")) {
		own, names, setter = wrapperOwn, "local math,tostring,pairs,collectgarbage,gcinfo,os ", wrapperOwnSetter
	}
	tail := strings.NewReplacer("--[[LIKELY]]", strings.Join(slices.Compact(likely), ","),
		"--[[SETRESP]]", setresp, "--[[OWN]]", own, "--[[GLOBALS]]", globals).Replace(wrapperTail)
	parameters := ") "
	if strings.Contains(text, "...") { // in a vararg function without ..., Lua makes a local arg, which the script would see
		parameters = "...) "
	}
	return wholeLua(wrapperHead + names + "__lockproxy[2]=function(" + parameters + text +
		"\nend local last=" + strconv.Itoa(vote.Lines(text)) + "\n" + setter + tail)
}

// shorten leaves out comments, indentation and empty lines, because masters do not need them.
func shorten(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(line, " ")
		if i := strings.Index(line, " -- "); i >= 0 {
			line = line[:i] + "\n"
		}
		if line != "\n" && !strings.HasPrefix(line, "--\n") && !strings.HasPrefix(line, "-- ") &&
			!strings.HasPrefix(line, "--mutant:") {
			b.WriteString(line)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// wrapperCommands has a row for each command that a script may call by vote: the kind of the command (r reads, u reads in no
// order, w writes, e writes and may give a key an expiry, t reads a clock, p publishes, s selects a database), and the
// arguments that are keys (1 the first, 2 the first two, * all, % every other, n a number of keys given by the first, d the
// first and a number of keys given by the second, b all but the first, o the second, c the first two if no database is named,
// 0 none).
const wrapperCommands = ` get=r1 strlen=r1 getrange=r1 substr=r1 getbit=r1 bitcount=r1 bitpos=r1 bitfield_ro=r1 lcs=r2
 mget=r* exists=r* touch=r* type=r1 dump=r1 ttl=t1 pttl=t1 expiretime=t1 pexpiretime=t1
 hget=r1 hmget=r1 hgetall=u1 hexists=r1 hlen=r1 hkeys=u1 hvals=u1 hstrlen=r1
 llen=r1 lindex=r1 lrange=r1 lpos=r1 scard=r1 sismember=r1 smismember=r1 smembers=u1 sinter=u* sunion=u* sdiff=u*
 sintercard=rn zcard=r1 zscore=r1 zmscore=r1 zrank=r1 zrevrank=r1 zcount=r1 zlexcount=r1 zrange=r1 zrevrange=r1
 zrangebyscore=r1 zrevrangebyscore=r1 zrangebylex=r1 zrevrangebylex=r1 zinter=rn zunion=rn zdiff=rn zintercard=rn
 geopos=r1 geodist=r1 geohash=r1 geosearch=r1 object=ro time=t0 ping=r0 echo=r0
 set=e1 setnx=w1 setex=e1 psetex=e1 getset=w1 getdel=w1 getex=e1 append=w1 incr=w1 decr=w1 incrby=w1 decrby=w1
 incrbyfloat=w1 setrange=w1 setbit=w1 bitfield=w1 bitop=wb mset=w% msetnx=w% del=w* unlink=w* expire=e1 pexpire=e1
 expireat=e1 pexpireat=e1 persist=w1 restore=e1 rename=e2 renamenx=e2 copy=ec
 hset=w1 hmset=w1 hsetnx=w1 hdel=w1 hincrby=w1 hincrbyfloat=w1 lpush=w1 rpush=w1 lpushx=w1 rpushx=w1 lpop=w1
 rpop=w1 lset=w1 lrem=w1 ltrim=w1 linsert=w1 rpoplpush=w2 lmove=w2 lmpop=wn sadd=w1 srem=w1 smove=w2
 sinterstore=w* sunionstore=w* sdiffstore=w* zadd=w1 zrem=w1 zincrby=w1 zpopmin=w1 zpopmax=w1 zmpop=wn
 zremrangebyscore=w1 zremrangebyrank=w1 zremrangebylex=w1 zunionstore=wd zinterstore=wd zdiffstore=wd
 zrangestore=w2 pfadd=w1 pfcount=w* pfmerge=w* geoadd=w1 publish=p0 spublish=p0 delex=w1 delifeq=w1 select=s0 `

// votable are the rows of wrapperCommands.
var votable = strings.Fields(wrapperCommands)

// MayVote says whether a script that runs by vote may call this command, in lower case.
func MayVote(command string) bool {
	return slices.ContainsFunc(votable, func(row string) bool { return strings.HasPrefix(row, command+"=") })
}
