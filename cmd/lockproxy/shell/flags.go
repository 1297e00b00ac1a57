// Package shell is lockproxy for people at a shell, and for scripts. run runs a command under a lock (run.go). locks, status and top
// show the state of locks, proxies and masters (locks.go, status.go, top.go). All need only a proxy that can be reached. Package client
// speaks to the proxy, package held keeps a lock, package group keeps a command and the processes that the command starts.
package shell

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"lockproxy/cmd/lockproxy/cli"
	"lockproxy/cmd/lockproxy/config"
	"lockproxy/cmd/lockproxy/shell/client"
)

// defaultProxy is where a proxy listens by default.
const defaultProxy = "127.0.0.1:6380"

// A reach is how to reach the proxies, from flags and variables.
type reach struct {
	proxies      []string
	user         string
	password     config.Secret
	passwordFile string
	tls          bool
	ca           string
	cert, key    string
	db           int
}

// flags are the flags of every command that speaks to a proxy.
func (r *reach) flags() []cli.Flag {
	return []cli.Flag{
		{Name: "proxy", Arg: "addr", Default: defaultProxy, Help: "proxies of one deployment, host:port with commas between them; the first that answers is used", Set: cli.Texts(&r.proxies)},
		{Name: "db", Arg: "number", Default: "0", Help: "the database that the lock is in", Set: cli.Number(&r.db, 0, 1023)},
		{Name: "user", Arg: "name", Help: "the user to log in as", Set: cli.Text(&r.user)},
		{Name: "password", Arg: "password", Secret: true, Help: "set LOCKPROXY_PROXY_PASSWORD, or name a file by --password-file"},
		{Name: "password-file", Arg: "file", Help: "a file that holds the password", Set: cli.Text(&r.passwordFile)},
		{Name: "tls", Help: "speak TLS", Set: cli.Yes(&r.tls)},
		{Name: "tls-ca", Arg: "file", Help: "PEM file with the authorities that the proxy is trusted by; implies --tls", Set: cli.Text(&r.ca)},
		{Name: "tls-cert", Arg: "file", Help: "PEM file with the certificate to show; implies --tls", Set: cli.Text(&r.cert)},
		{Name: "tls-key", Arg: "file", Help: "PEM file with the key of the certificate", Set: cli.Text(&r.key)},
	}
}

// variables are the environment variables that stand in for flags.
var variables = []cli.Word{
	{Name: "LOCKPROXY_PROXY", Help: "as --proxy"},
	{Name: "LOCKPROXY_PROXY_USER", Help: "as --user"},
	{Name: "LOCKPROXY_PROXY_PASSWORD", Help: "the password to log in with"},
	{Name: "LOCKPROXY_PROXY_PASSWORD_FILE", Help: "as --password-file"},
	{Name: "LOCKPROXY_PROXY_TLS_CA", Help: "as --tls-ca"},
	{Name: "LOCKPROXY_PROXY_TLS_CERT", Help: "as --tls-cert"},
	{Name: "LOCKPROXY_PROXY_TLS_KEY", Help: "as --tls-key"},
}

// environment takes from the variables all values that no flag has set, and the password.
func (r *reach) environment(env []string) error {
	values := map[string]string{}
	for _, kv := range env {
		if name, value, _ := strings.Cut(kv, "="); value != "" {
			values[name] = value
		}
	}
	if list := values["LOCKPROXY_PROXY"]; len(r.proxies) == 0 && list != "" {
		if err := cli.Texts(&r.proxies)(list); err != nil {
			return cli.Usage("LOCKPROXY_PROXY: " + err.Error())
		}
	}
	for name, to := range map[string]*string{"USER": &r.user, "PASSWORD_FILE": &r.passwordFile, "TLS_CA": &r.ca, "TLS_CERT": &r.cert, "TLS_KEY": &r.key} {
		if *to == "" {
			*to = values["LOCKPROXY_PROXY_"+name]
		}
	}
	r.password = config.NewSecret(values["LOCKPROXY_PROXY_PASSWORD"])
	return nil
}

// open returns the proxies. The error says how to mend the flags or variables.
func (r *reach) open(env []string) (*client.Proxies, error) {
	if err := r.environment(env); err != nil {
		return nil, err
	}
	if len(r.proxies) == 0 {
		r.proxies = []string{defaultProxy}
	}
	for i, addr := range r.proxies {
		if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
			return nil, cli.Usage(fmt.Sprintf("--proxy: %q is no address; write host:port, such as %s", config.WithoutPassword(addr), defaultProxy))
		}
		if strings.HasPrefix(addr, ":") {
			r.proxies[i] = "127.0.0.1" + addr
		}
	}
	if r.passwordFile != "" {
		secret, err := config.ReadSecret(r.passwordFile)
		if err != nil {
			return nil, cli.Usage("--password-file: " + err.Error())
		}
		r.password = secret
	}
	if r.user != "" && r.password.Empty() {
		return nil, cli.Usage("--user: there is no password; set LOCKPROXY_PROXY_PASSWORD, or name a file by --password-file")
	}
	cfg, err := r.tlsConfig()
	if err != nil {
		return nil, err
	}
	return &client.Proxies{Addrs: r.proxies, Login: client.Login{User: r.user, Password: r.password.Reveal()}, Name: clientName(), TLS: cfg, Database: r.db}, nil
}

// clientName is the name of this process in the proxies' lists. A name has no spaces.
func clientName() string {
	host, _ := os.Hostname()
	visible := func(c rune) rune {
		if c < '!' || c > '~' {
			return -1
		}
		return c
	}
	return fmt.Sprintf("lockproxy@%.64s:%d", strings.Map(visible, host), os.Getpid())
}

// tlsConfig returns nil without TLS.
func (r *reach) tlsConfig() (*tls.Config, error) {
	if !r.tls && r.ca == "" && r.cert == "" && r.key == "" {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if r.ca != "" {
		pem, err := config.ReadFile(r.ca)
		if err != nil {
			return nil, cli.Usage("--tls-ca: " + err.Error())
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, cli.Usage("--tls-ca: " + r.ca + " holds no certificate; name a PEM file")
		}
	}
	if (r.cert == "") != (r.key == "") {
		return nil, cli.Usage("--tls-cert and --tls-key go together; give both")
	}
	if r.cert != "" {
		pair, err := tls.LoadX509KeyPair(r.cert, r.key)
		if err != nil {
			return nil, cli.Usage("--tls-cert: " + err.Error())
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// askMax is how long a proxy may take to answer a question of a person.
const askMax = 10 * time.Second

// ask sends one command to the first proxy that answers.
func ask(proxies *client.Proxies, args ...string) (any, string, error) {
	conn, err := proxies.Connect(time.Now().Add(askMax))
	if err != nil {
		return nil, "", err
	}
	defer conn.Close()
	reply, err := conn.Do(time.Now().Add(askMax), args...)
	if err != nil {
		return nil, conn.Addr, fmt.Errorf("%s %s", conn.Addr, client.Reason(err))
	}
	return reply, conn.Addr, nil
}
