//go:build !linux

package main

import "syscall"

// leashed starts the program in a group of its own. Only Linux can also tie the program's life to guard's.
func leashed() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
