// SPDX-License-Identifier: MIT OR 0BSD

package main

import (
	"io"
	"net"
	"strconv"
	"sync"
	"syscall"
)

// Idle connections without a buffer, and relays.

const sharedSize = 65536

var shared = sync.Pool{New: func() any { return new([sharedSize]byte) }}

// Sends back the bytes that are there, by a buffer that is only borrowed. Not ready: there are
// none. Bytes that the socket does not take are kept in rest.
func answerReady(fd int) (n int, rest []byte, ready bool, err error) {
	buffer := shared.Get().(*[sharedSize]byte)
	defer shared.Put(buffer)
	if n, err = syscall.Read(fd, buffer[:]); err != nil || n == 0 {
		return n, nil, err != syscall.EAGAIN, err
	}
	sent, err := syscall.Write(fd, buffer[:n])
	if err == syscall.EAGAIN {
		sent, err = 0, nil
	}
	if err == nil && sent < n {
		rest = append(rest, buffer[sent:n]...)
	}
	return n, rest, true, err
}

func idle(c net.Conn) {
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		fail(err)
	}
	var n int
	var rest []byte
	var failed error
	answer := func(fd uintptr) (ready bool) {
		n, rest, ready, failed = answerReady(int(fd))
		return ready
	}
	for {
		if err := raw.Read(answer); err != nil || failed != nil || n == 0 {
			return
		}
		requests.Add(1)
		bytes.Add(int64(n))
		if rest == nil {
			continue
		}
		if _, err := c.Write(rest); err != nil {
			return
		}
		rest = nil
	}
}

// io.Copy between two TCP connections is by splice(2).
func relayTo(port int) func(net.Conn) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	return func(client net.Conn) {
		defer client.Close()
		backend, err := net.Dial("tcp4", address)
		if err != nil {
			return
		}
		defer backend.Close()
		done := make(chan struct{})
		go func() {
			pass(client, backend)
			close(done)
		}()
		pass(backend, client)
		<-done
	}
}

func pass(to, from net.Conn) {
	io.Copy(to, from)
	to.(*net.TCPConn).CloseWrite()
}
