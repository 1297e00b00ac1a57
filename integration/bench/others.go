package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lockproxy/integration/harness"
)

// A server is how the members of another lock service are started, from Debian's packages.
type server struct {
	peer, subject string // its name for the program of the peers, and in the table
	needs         string // a file; without it the service is not measured
	pack          string // the package that has the file
	start         func(dir string) (members []*harness.Process, addrs []string, err error)
}

const othersMembers = 3

var servers = []server{
	{"etcd", "etcd, 3 members", "/usr/bin/etcd", "etcd-server", startEtcd},
	{"zookeeper", "ZooKeeper, 3 members", "/usr/share/java/zookeeper.jar", "zookeeper", startZooKeeper},
}

// othersPart measures lock services that write to disk before they answer, and lockproxy beside them on masters that do not, and on
// masters that do: one key for which all wait, and keys of their own.
func (f *fleet) othersPart(s settings, r *report) error {
	durable, err := harness.StartRedises(othersMembers, "--appendonly", "yes", "--appendfsync", "always")
	if err != nil {
		return err
	}
	defer harness.StopAll(durable)
	g := f.groups[0]
	proxy, err := harness.StartProxy(f.bin, harness.Addrs(durable))
	if err != nil {
		return err
	}
	defer func() { _ = proxy.Stop() }()
	s.duration *= longContest
	running, err := startServers(f.dir)
	defer running.stop()
	if err != nil {
		return err
	}
	for _, shape := range []struct {
		what string
		keys int
	}{{"one key", 1}, {"own keys", 0}} {
		subjects := []subject{
			{name: g.name("lockproxy") + ", no disk", masters: g.masters, run: contested(shape.keys, lockClient(g.proxy.Addr))},
			{name: "lockproxy, 3 masters, fsync always", masters: durable, run: contested(shape.keys, lockClient(proxy.Addr))},
		}
		for _, o := range running {
			subjects = append(subjects, subject{name: o.subject, run: f.peerContest(o.peer, o.addrs, shape.keys)})
		}
		if err := r.rows(os.Stdout, s, shape.what, 50, 1, subjects); err != nil {
			return err
		}
	}
	return nil
}

// An ensemble is a service whose members run.
type ensemble struct {
	server
	members []*harness.Process
	addrs   []string
}

type ensembles []ensemble

// startServers starts each service that is installed, and says which is not. Those that it returns are to be stopped after an error, too.
func startServers(dir string) (all ensembles, err error) {
	for _, o := range servers {
		if _, err := os.Stat(o.needs); err != nil {
			fmt.Printf("  not measured: %s: install Debian's package %s\n", o.subject, o.pack)
			continue
		}
		own, err := os.MkdirTemp(dir, o.peer+"-")
		if err != nil {
			return all, err
		}
		members, addrs, err := o.start(own)
		all = append(all, ensemble{o, members, addrs})
		if err != nil {
			return all, fmt.Errorf("%s: %w", o.subject, err)
		}
	}
	return all, nil
}

func (all ensembles) stop() {
	for _, e := range all {
		for _, m := range e.members {
			m.Kill()
		}
	}
}

// freePorts returns so many.
func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	var errs []error
	for i := range ports {
		port, err := harness.FreePort()
		ports[i], errs = port, append(errs, err)
	}
	return ports, errors.Join(errs...)
}

func startEtcd(dir string) (members []*harness.Process, addrs []string, err error) {
	ports, err := freePorts(2 * othersMembers)
	if err != nil {
		return nil, nil, err
	}
	client, peer := ports[:othersMembers], ports[othersMembers:]
	url := func(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }
	var cluster []string
	for i := range othersMembers {
		cluster = append(cluster, fmt.Sprintf("m%d=%s", i, url(peer[i])))
		addrs = append(addrs, fmt.Sprintf("127.0.0.1:%d", client[i]))
	}
	for i := range othersMembers {
		name := fmt.Sprintf("m%d", i)
		m, err := harness.StartProgram("etcd "+addrs[i], "etcd", "--name", name, "--data-dir", filepath.Join(dir, name),
			"--listen-client-urls", url(client[i]), "--advertise-client-urls", url(client[i]),
			"--listen-peer-urls", url(peer[i]), "--initial-advertise-peer-urls", url(peer[i]),
			"--initial-cluster", strings.Join(cluster, ","), "--initial-cluster-state", "new")
		if err != nil {
			return members, nil, err
		}
		members = append(members, m)
	}
	return members, addrs, answer(members, func(i int) error { return etcdServes(url(client[i])) })
}

// zooConfig is Debian's zoo.cfg, with members, ports, and as many connections from one address as there are clients.
const zooConfig = `tickTime=2000
initLimit=10
syncLimit=5
maxClientCnxns=0
4lw.commands.whitelist=ruok,srvr
admin.enableServer=false
`

func startZooKeeper(dir string) (members []*harness.Process, addrs []string, err error) {
	ports, err := freePorts(3 * othersMembers)
	if err != nil {
		return nil, nil, err
	}
	var list strings.Builder
	for i := range othersMembers {
		fmt.Fprintf(&list, "server.%d=127.0.0.1:%d:%d\n", i+1, ports[3*i+1], ports[3*i+2])
		addrs = append(addrs, fmt.Sprintf("127.0.0.1:%d", ports[3*i]))
	}
	for i := range othersMembers {
		data := filepath.Join(dir, fmt.Sprintf("m%d", i))
		config := filepath.Join(data, "zoo.cfg")
		text := fmt.Sprintf("%sdataDir=%s\nclientPort=%d\n%s", zooConfig, data, ports[3*i], list.String())
		if err := errors.Join(os.Mkdir(data, 0o755), os.WriteFile(filepath.Join(data, "myid"), fmt.Appendln(nil, i+1), 0o644),
			os.WriteFile(config, []byte(text), 0o644)); err != nil {
			return members, nil, err
		}
		m, err := harness.StartProgram("zookeeper "+addrs[i], "java", "-cp", "/etc/zookeeper/conf:/usr/share/java/zookeeper.jar",
			"-Dzookeeper.root.logger=ERROR,CONSOLE", "-Dzookeeper.log.dir="+data, "org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
		if err != nil {
			return members, nil, err
		}
		members = append(members, m)
	}
	return members, addrs, answer(members, func(i int) error { return zooServes(addrs[i]) })
}

// answer waits until each member does.
func answer(members []*harness.Process, ask func(i int) error) error {
	for i, m := range members {
		if err := m.Ready(func() error { return ask(i) }); err != nil {
			return err
		}
	}
	return nil
}

// zooServes returns nil if the member is part of an ensemble.
func zooServes(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("srvr")); err != nil {
		return err
	}
	text, err := io.ReadAll(conn)
	if err == nil && !bytes.Contains(text, []byte("Mode: ")) {
		err = fmt.Errorf("srvr: %q", text)
	}
	return err
}

// etcdServes returns nil if the member knows a leader.
func etcdServes(url string) error {
	reply, err := http.Get(url + "/health")
	if err != nil {
		return err
	}
	defer func() { _ = reply.Body.Close() }()
	if reply.StatusCode != http.StatusOK {
		err = errors.New(reply.Status)
	}
	return err
}
