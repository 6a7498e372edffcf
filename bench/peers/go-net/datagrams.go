// SPDX-License-Identifier: MIT OR 0BSD

package main

import (
	"encoding/binary"
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/net/ipv4"
)

// Many datagrams for each system call, and bursts: see bench/servers/bursts.h. Package net has
// neither; golang.org/x/net has the former, and control data says where a burst is taken apart.

const (
	udpSegment, udpGro = 103, 104
	burstDatagrams     = 32
	burstDatagram      = 1200
	burstBytes         = burstDatagrams * burstDatagram
	burstBuffers       = 1 << 20
	controlSize        = 64
)

func many(c *net.UDPConn) {
	p := ipv4.NewPacketConn(c)
	messages := make([]ipv4.Message, burstDatagrams)
	buffers := make([][]byte, len(messages))
	for i := range messages {
		buffers[i] = make([]byte, 1500)
		messages[i].Buffers = [][]byte{buffers[i]}
	}
	for {
		n, err := p.ReadBatch(messages, 0)
		if err != nil {
			return
		}
		sent := 0
		for i := range messages[:n] {
			messages[i].Buffers[0] = buffers[i][:messages[i].N]
			sent += messages[i].N
		}
		for done := 0; done < n; {
			k, err := p.WriteBatch(messages[done:n], 0)
			if err != nil {
				return
			}
			done += k
		}
		requests.Add(int64(n))
		bytes.Add(int64(sent))
		for i := range messages[:n] {
			messages[i].Buffers[0] = buffers[i]
		}
	}
}

func setUDP(c *net.UDPConn, option, value int) {
	raw, err := c.SyscallConn()
	if err != nil {
		fail(err)
	}
	raw.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_UDP, option, value)
	})
	if err != nil {
		fail(err)
	}
	c.SetReadBuffer(burstBuffers)
	c.SetWriteBuffer(burstBuffers)
}

func sendBursts(c *net.UDPConn) {
	var number [8]byte
	burst := make([]byte, burstBytes)
	for i := range burst {
		burst[i] = 0x5a
	}
	control := make([]byte, syscall.CmsgSpace(2))
	head := (*syscall.Cmsghdr)(unsafe.Pointer(&control[0]))
	head.Level, head.Type = syscall.IPPROTO_UDP, udpSegment
	head.SetLen(syscall.CmsgLen(2))
	binary.NativeEndian.PutUint16(control[syscall.CmsgLen(0):], burstDatagram)
	setUDP(c, udpSegment, 0)
	for {
		_, from, err := c.ReadFromUDPAddrPort(number[:])
		if err != nil {
			return
		}
		first := binary.NativeEndian.Uint64(number[:]) * burstDatagrams
		for i := range burstDatagrams {
			binary.NativeEndian.PutUint64(burst[i*burstDatagram:], first+uint64(i))
		}
		if _, _, err = c.WriteMsgUDPAddrPort(burst, control, from); err != nil {
			fail(err)
		}
		requests.Add(1)
		bytes.Add(burstBytes)
	}
}

// The length of each datagram, by the control data.
func segmentOf(control []byte, otherwise int) int {
	for len(control) >= syscall.CmsgLen(4) {
		head := (*syscall.Cmsghdr)(unsafe.Pointer(&control[0]))
		if head.Level == syscall.IPPROTO_UDP && head.Type == udpGro {
			return int(binary.NativeEndian.Uint32(control[syscall.CmsgLen(0):]))
		}
		control = control[min(len(control), syscall.CmsgSpace(int(head.Len)-syscall.CmsgLen(0))):]
	}
	return otherwise
}

func receiveBursts(c *net.UDPConn) {
	var receipt [16]byte
	var datagrams, sum uint64
	joined := make([]byte, 65536)
	control := make([]byte, controlSize)
	setUDP(c, udpGro, 1)
	for {
		n, oob, _, from, err := c.ReadMsgUDPAddrPort(joined, control)
		if err != nil {
			return
		}
		before := datagrams / burstDatagrams
		segment := segmentOf(control[:oob], n)
		for at := 0; segment >= 8 && at+8 <= n; at += segment {
			sum += binary.NativeEndian.Uint64(joined[at:])
			datagrams++
		}
		if datagrams/burstDatagrams == before {
			continue
		}
		binary.NativeEndian.PutUint64(receipt[:], datagrams)
		binary.NativeEndian.PutUint64(receipt[8:], sum)
		if _, err = c.WriteToUDPAddrPort(receipt[:], from); err != nil {
			fail(err)
		}
		requests.Add(1)
		bytes.Add(int64(len(receipt)))
	}
}
