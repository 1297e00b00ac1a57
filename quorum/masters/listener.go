package masters

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A Source is a master whose messages can be heard.
type Source interface {
	// Addr is as Master's.
	Addr() string
	// Listen opens a connection for subscriptions. The context bounds the dial only.
	Listen(ctx context.Context) (Listener, error)
}

// A Listener is one connection for messages. One goroutine may Send while another is in Next. Close may be called at
// any time, and ends both.
type Listener interface {
	// Send writes a command and does not wait for the answer. Send blocks while the master does not read.
	Send(c Command, name string) error
	// Next returns the master's next answer or message. Each command is answered once, in order: by a Confirmed, a
	// Refused or, for Ping, a Pong. After an error the connection is of no more use.
	Next() (Heard, error)
	Close() error
}

// A Command changes the subscriptions of a Listener.
type Command uint8

// The commands of a Listener. Ping has no name.
const (
	Subscribe Command = iota
	Unsubscribe
	PSubscribe
	PUnsubscribe
	Ping
)

// Heard is something a master said.
type Heard struct {
	Kind    HeardKind
	Pattern string // of a Message that matched a pattern
	Channel string // of a Message
	Payload string // of a Message
	Err     error  // of a Refused
}

// A HeardKind is the kind of a Heard.
type HeardKind uint8

// The kinds of a Heard. A message comes once for each matching subscription of the connection.
const (
	Message HeardKind = iota
	Confirmed
	Refused
	Pong
)

// Listen connects and authenticates.
func (m *Redis) Listen(ctx context.Context) (Listener, error) {
	raw, err := m.dial(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	first := &heard{Conn: raw}
	client := redis.NewClient(m.greeting(first))
	l := &redisListener{raw: raw, client: client, sub: client.Subscribe(context.Background())}
	err = l.Send(Ping, "")
	if err == nil {
		var h Heard
		h, err = l.Next()
		if h.Kind == Refused && !strings.HasPrefix(h.Err.Error(), "NOPERM") {
			err = h.Err
		}
	}
	if err != nil {
		err = first.turnedAway(err)
		_ = l.Close()
		return nil, whyEnded(ctx, raw, err)
	}
	first.greeted = true
	return l, nil
}

type redisListener struct {
	raw    net.Conn
	client *redis.Client
	sub    *redis.PubSub
}

func (l *redisListener) Send(c Command, name string) error {
	ctx := context.Background()
	switch c {
	case Subscribe:
		return l.sub.Subscribe(ctx, name)
	case Unsubscribe:
		return l.sub.Unsubscribe(ctx, name)
	case PSubscribe:
		return l.sub.PSubscribe(ctx, name)
	case PUnsubscribe:
		return l.sub.PUnsubscribe(ctx, name)
	}
	return l.sub.Ping(ctx)
}

// Next recovers from panics of the client library, which does not check the shape of a master's messages.
func (l *redisListener) Next() (h Heard, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a message that is none: %v", p)
		}
	}()
	said, err := l.sub.ReceiveTimeout(context.Background(), 0)
	switch said := said.(type) {
	case *redis.Message:
		return Heard{Kind: Message, Pattern: said.Pattern, Channel: said.Channel, Payload: said.Payload}, nil
	case *redis.Subscription:
		return Heard{Kind: Confirmed}, nil
	case *redis.Pong:
		return Heard{Kind: Pong}, nil
	}
	if isReply(err) && !errors.Is(err, redis.Nil) {
		return Heard{Kind: Refused, Err: err}, nil
	}
	return Heard{}, err
}

// Close closes the socket first, which ends a waiting Send and a waiting Next.
func (l *redisListener) Close() error {
	err := l.raw.Close()
	_ = l.sub.Close()
	_ = l.client.Close()
	return err
}

var (
	_ Source   = (*Redis)(nil)
	_ Listener = (*redisListener)(nil)
)
