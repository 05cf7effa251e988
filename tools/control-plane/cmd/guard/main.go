// Guard runs one program and sees to it that the program does not outlive whoever asked for it.
//
//	guard [-grace 10s] PROGRAM [ARGUMENT...]
//
// Stdin is the leash. A line "stop" ends the program politely (SIGTERM, and SIGKILL after the grace), a line "kill"
// at once (SIGKILL). When stdin ends, whoever held the other end is gone, perhaps by SIGKILL and without a chance to
// clean up, and the program is killed at once. As with a container, SIGTERM goes to the program alone, and SIGKILL to
// its whole process group.
//
// The program inherits stdout, stderr and the environment. Guard exits as the program did: with its exit code, with
// 128 + n if signal n ended it, with 127 if it could not be started.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

const (
	couldNotStart = 127
	signalBase    = 128
)

func main() {
	grace := flag.Duration("grace", 10*time.Second, "how long a stopped program may take before it is killed")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: guard [-grace 10s] PROGRAM [ARGUMENT...]")
		os.Exit(2)
	}
	// The kernel's own leash (see leash_linux.go) is tied to the thread that starts the program.
	runtime.LockOSThread()
	program := exec.Command(flag.Arg(0), flag.Args()[1:]...)
	program.Stdout, program.Stderr = os.Stdout, os.Stderr
	program.SysProcAttr = leashed()
	if err := program.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "guard: %v\n", err)
		os.Exit(couldNotStart)
	}
	go holdLeash(os.Stdin, program.Process.Pid, *grace)
	err := program.Wait()
	// What the program left running in its group ends with it, as a container's processes end with its first one.
	killGroup(program.Process.Pid)
	os.Exit(exitCode(err))
}

// holdLeash ends the program when it is told to, or when nobody is left who could tell.
func holdLeash(stdin io.Reader, pid int, grace time.Duration) {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	orders := make(chan string)
	go func() {
		defer close(orders)
		for lines := bufio.NewScanner(stdin); lines.Scan(); {
			orders <- lines.Text()
		}
	}()
	for {
		select {
		case <-interrupted:
			killGroup(pid)
		case order, held := <-orders:
			if !held || order == "kill" {
				killGroup(pid)
				orders = nil
			} else if order == "stop" {
				_ = syscall.Kill(pid, syscall.SIGTERM)
				time.AfterFunc(grace, func() { killGroup(pid) })
			}
		}
	}
}

// killGroup may find nobody left to kill; that is what it wants in the end, so errors do not matter.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

func exitCode(err error) int {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		if err != nil {
			fmt.Fprintf(os.Stderr, "guard: %v\n", err)
			return couldNotStart
		}
		return 0
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return signalBase + int(status.Signal())
	}
	return exit.ExitCode()
}
