# One client of Redis.pm, by commands; see ../go/remote.
use strict;
use warnings;
use Redis;
use Time::HiRes qw(time sleep);

my $RELEASE = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end';
my $EXTEND = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end';
my $DOUBLE = 'return redis.call("incrby", KEYS[1], redis.call("get", KEYS[1]))';

sub connected {
    return Redis->new(server => "$ENV{PROXY_HOST}:$ENV{PROXY_PORT}", reconnect => 2, every => 50_000, name => 'by-hand');
}

sub token {
    open(my $random, '<:raw', '/dev/urandom') or die $!;
    read($random, my $bytes, 16) == 16 or die 'no random bytes';
    return $bytes;
}

my ($redis, %locks) = (connected());

sub acquire {
    my ($lock, $wait) = @_;
    my $end = time + $wait / 1000;
    until (defined $redis->set($lock->{name}, $lock->{token}, 'NX', 'PX', $lock->{ttl})) {
        return 0 if time >= $end;
        sleep 0.05;
    }
    die 'GET tells another token' unless $redis->get($lock->{name}) eq $lock->{token};
    return 1;
}

sub release {
    my ($lock) = @_;
    my $sha = $redis->script_load($RELEASE);
    return $redis->evalsha($sha, 1, $lock->{name}, $lock->{token}) == 1;
}

sub extend {
    my ($lock, $ttl) = @_;
    return $redis->eval($EXTEND, 1, $lock->{name}, $lock->{token}, $ttl) == 1;
}

# Uses everything else that the library has, and returns what it has used.
sub use_all {
    my ($name, $piped) = @_;
    my @used;
    my $step = sub {
        my ($what, $got, $wanted) = @_;
        die "$what: $got" unless $got eq $wanted;
        push @used, $what;
    };
    my ($text, $number, $fields, $items) = map { "$name:$_" } qw(text number fields items);
    $redis->mset($text, 'one', $number, 2);
    $step->('strings', join(' ', $redis->mget($text, $number)), 'one 2');
    $redis->hset($fields, 'a', 1);
    $step->('hash', join(' ', $redis->hgetall($fields)), 'a 1');
    $redis->rpush($items, 'x', 'y');
    $step->('list', join(' ', $redis->lrange($items, 0, -1)), 'x y');
    $redis->rpush("$name:queue", 'z');
    $step->('BLPOP', join(' ', $redis->blpop("$name:queue", 20)), "$name:queue z");
    $redis->watch($number);
    $redis->multi;
    $redis->incr($number);
    $redis->hincrby($fields, 'a', 1);
    $step->('WATCH, MULTI', join(' ', $redis->exec), '3 2');
    my @replies;
    my $note = sub { push @replies, $_[0] };
    $redis->set($text, 'two', $note);
    $redis->set($piped, 't', 'NX', 'PX', 30_000, $note);
    $redis->get($text, $note);
    $redis->del($piped, $note);
    $redis->wait_all_responses;
    $step->('pipeline', "@replies", 'OK OK two 1');
    my ($listener, $heard) = (connected(), '');
    $listener->subscribe("$name:news", sub { $heard = $_[0] });
    $redis->publish("$name:news", 'hello');
    $listener->wait_for_messages(20) until $heard;
    $step->('pub/sub', $heard, 'hello');
    my ($cursor, %found) = (0);
    do {
        ($cursor, my $page) = $redis->scan($cursor, 'MATCH', "$name:*", 'COUNT', 1000);
        $found{$_} = 1 for @$page;
    } while ($cursor);
    $step->('SCAN', join(' ', sort keys %found), join(' ', sort $text, $number, $fields, $items));
    $step->('scripts', $redis->eval($DOUBLE, 1, $number), 6);
    return join(', ', @used);
}

$| = 1;
print 'ready ', Redis->VERSION, " extends tokens data\n";
while (my $line = <STDIN>) {
    my ($verb, $id, @words) = split ' ', $line;
    my $answer = eval {
        return 'used ' . use_all($id, $words[0]) if $verb eq 'data';
        if ($verb eq 'lock') {
            my ($name, $ttl, $token) = @words;
            $locks{$id} = { name => $name, ttl => $ttl, token => $token eq '-' ? token() : pack('H*', substr($token, 1)) };
            return 'yes';
        }
        my %does = (acquire => \&acquire, release => \&release, extend => \&extend);
        return $does{$verb}->($locks{$id}, @words) ? 'yes' : 'no';
    };
    $answer = "error $@" unless defined $answer;
    print $answer =~ tr/\r\n/  /r, "\n";
}
