// SPDX-License-Identifier: MIT OR 0BSD

// The server of bench/servers/net_server.c in Go: a goroutine for each connection, for http that of
// net/http.
//
//	go-net MODE WORKERS [SECONDS [PORT]]     all modes but liar
//	go-net --version
//
// WORKERS is GOMAXPROCS. All else, and what it prints at its end, is as there. resp has a parser
// and a table of its own, see resp.go; idle and relay are in idle.go, the
// modes with many datagrams in datagrams.go.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

const bufferSize = 4096

// Added up by goroutines as they end, those of http and udp as they go.
var requests, bytes atomic.Int64

func fail(err error) {
	fmt.Fprintln(os.Stderr, "go-net:", err)
	os.Exit(1)
}

func usage() (cpuUs, wakes int64) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		fail(err)
	}
	return (u.Utime.Nano() + u.Stime.Nano()) / 1000, u.Nvcsw
}

// ---- services

func echo(c net.Conn) (answered, sent int64) {
	buffer := make([]byte, bufferSize)
	for {
		n, err := c.Read(buffer)
		if err != nil {
			return
		}
		if _, err = c.Write(buffer[:n]); err != nil {
			return
		}
		answered++
		sent += int64(n)
	}
}

func resp(c net.Conn) (answered, sent int64) {
	input := make([]byte, bufferSize)
	output := make([]byte, 0, bufferSize)
	have := 0
	for {
		n, err := c.Read(input[have:])
		if err != nil {
			return
		}
		have += n
		used, count, ok := 0, 0, true
		output, used, count, ok = answerAll(input[:have], output[:0])
		if !ok || have-used == len(input) { // or too long
			return
		}
		if _, err = c.Write(output); err != nil {
			return
		}
		answered += int64(count)
		sent += int64(len(output))
		have = copy(input, input[used:have])
	}
}

// Without the Date that the others do not send either. net/http writes each answer by itself, also
// when requests are pipelined.
func hello(w http.ResponseWriter, _ *http.Request) {
	w.Header()["Date"] = nil
	w.Header()["Content-Type"] = plain
	n, _ := w.Write(body)
	requests.Add(1)
	bytes.Add(int64(n))
}

var (
	plain = []string{"text/plain"}
	body  = []byte("Hello, World!")
)

func datagrams(c *net.UDPConn) {
	buffer := make([]byte, bufferSize)
	for {
		n, from, err := c.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return
		}
		if _, err = c.WriteToUDPAddrPort(buffer[:n], from); err != nil {
			continue // lost, as datagrams may be; the client sees it
		}
		requests.Add(1)
		bytes.Add(int64(n))
	}
}

// ---- program

// Accepted connections have TCP_NODELAY set by package net.
func accept(l net.Listener, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go serve(c)
	}
}

func counted(serve func(net.Conn) (answered, sent int64)) func(net.Conn) {
	return func(c net.Conn) {
		answered, sent := serve(c)
		c.Close()
		requests.Add(answered)
		bytes.Add(sent)
	}
}

// Listens, and serves in goroutines. Gives the port.
func start(mode string) int {
	if serve := modes[mode]; serve != nil {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			fail(err)
		}
		go serve(c)
		return c.LocalAddr().(*net.UDPAddr).Port
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		fail(err)
	}
	switch mode {
	case "http":
		go http.Serve(l, http.HandlerFunc(hello))
	case "resp":
		go accept(l, counted(resp))
	case "idle":
		go accept(l, idle)
	case "relay":
		go accept(l, relayTo(number(4, 1)))
	default:
		go accept(l, counted(echo))
	}
	return l.Addr().(*net.TCPAddr).Port
}

// The modes; those of datagrams have a function here.
var modes = map[string]func(*net.UDPConn){
	"echo": nil, "http": nil, "resp": nil, "idle": nil, "relay": nil,
	"udp": datagrams, "udp-many": many, "udp-send": sendBursts, "udp-receive": receiveBursts,
}

func number(i, otherwise int) int {
	if i >= len(os.Args) {
		return otherwise
	}
	n, err := strconv.Atoi(os.Args[i])
	if err != nil || n < 1 {
		fail(fmt.Errorf("%s: a number from 1", os.Args[i]))
	}
	return n
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println("Go", runtime.Version()[2:])
		return
	}
	mode := ""
	if len(os.Args) > 2 {
		mode = os.Args[1]
	}
	if _, ok := modes[mode]; !ok {
		fail(fmt.Errorf("usage: go-net MODE WORKERS [SECONDS [PORT]]"))
	}
	runtime.GOMAXPROCS(number(2, 1))
	time.AfterFunc(time.Duration(number(3, 300))*time.Second, func() {
		fail(fmt.Errorf("forgotten"))
	})
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	before, _ := usage()
	fmt.Println("port", start(os.Args[1]))
	<-term
	cpu, wakes := usage()
	fmt.Printf("requests %d\nbytes %d\ncpu_us %d\nwakes %d\n", requests.Load(), bytes.Load(),
		cpu-before, wakes)
}
