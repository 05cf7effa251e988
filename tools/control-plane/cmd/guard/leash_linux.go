package main

import "syscall"

// leashed starts the program in a group of its own, and has the kernel kill it should guard itself be killed.
func leashed() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
