package quorum

import (
	"slices"
	"strings"
)

// What a script that runs by vote may call: how (r reads, u reads what has no order, w writes, e writes and may give a key an expiry, t reads a clock,
// p publishes, s selects a database), and which of its arguments are keys (1 the first, 2 the first two, * all, % every
// other, n as many as the first says, d the first and as many as the second says, b all but the first, o the second, c the
// first two if no database is named, 0 none).
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
