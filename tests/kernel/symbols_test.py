#!/usr/bin/python3
"""Tests the names of functions in stacks of user code that `nettrace symbolize` adds: of programs with and without PIE,
static, stripped with debug information apart, of a plugin, of C++ and of a JIT compiler. binutils decide which function
is right. Needs root, tracefs, and a C compiler for programs with frame pointers."""

import contextlib
import ctypes.util
import http.server
import json
import lzma
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest
import unittest.mock

from support import commands
from support import elf_functions
from support import script
from support.kernel import tracepoints

ARGS = script.options(__doc__, "nettrace")
CALL = "syscalls:sys_enter_getppid"
DEPTH = 20
CALLS = 50
FLAGS = ["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-Wl,--build-id"]

RECURSION = r"""
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __cplusplus
namespace Shop {
#endif
__attribute__((noinline)) int recurse(int n) {
  int below = n == 0 ? (int)syscall(SYS_getppid) : recurse(n - 1);
  __asm__ volatile("" : "+r"(below));
  return below;
}
#ifdef __cplusplus
}
using namespace Shop;
#endif
int main(void) {
  for (int i = 0; i < %d; ++i) recurse(%d);
  return 0;
}
""" % (CALLS, DEPTH)

PLUGIN = r"""
static __attribute__((noinline)) int inner(int (*leaf)(void)) {
  int result = leaf();
  __asm__ volatile("" : "+r"(result));
  return result;
}
int call(int (*leaf)(void)) {
  int result = inner(leaf);
  __asm__ volatile("" : "+r"(result));
  return result;
}
"""

LOADER = r"""
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) static int leaf(void) {
  int result = (int)syscall(SYS_getppid);
  __asm__ volatile("" : "+r"(result));
  return result;
}
int main(void) {
  void* library = dlopen("./plugin.so", RTLD_NOW);
  int (*call)(int (*)(void)) = (int (*)(int (*)(void)))dlsym(library, "call");
  for (int i = 0; i < %d; ++i) call(leaf);
  return 0;
}
""" % CALLS

# Copies the code of a function that calls its argument, as a JIT compiler would write it.
JIT = r"""
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static int leaf(void) {
  int result = (int)syscall(SYS_getppid);
  __asm__ volatile("" : "+r"(result));
  return result;
}
int main(void) {
  static const unsigned char kCode[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
  void* code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(code, kCode, sizeof kCode);
  char path[64];
  snprintf(path, sizeof path, "/tmp/perf-%%d.map", getpid());
  FILE* map = fopen(path, "w");
  fprintf(map, "%%lx %%zx int [shop] Shop::Compiled()[Tier0]\n", (unsigned long)code, sizeof kCode);
  fclose(map);
  for (int i = 0; i < %d; ++i) ((int (*)(int (*)(void)))code)(leaf);
  puts(path);
  fflush(stdout);
  getchar();  // waits until the functions of this process were searched
  return 0;
}
""" % CALLS


def run(*command):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True).stdout


class SymbolsTest(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="nettrace-symbols-")
        self.addCleanup(self._folder.cleanup)
        self.folder = pathlib.Path(self._folder.name)
        self.folder.chmod(0o755)
        self.trace = self.folder / "trace.nettrace"

    def compile(self, name, source, *flags, language="c"):
        path = self.folder / name
        subprocess.run(["c++" if language == "c++" else "cc", *FLAGS, *flags, "-x", language, "-o", path, "-", "-x", "none",
                        "-ldl"], input=source.encode(), check=True)
        return path

    def record(self, program, command=None):
        """Records the program, which `command` starts if it is not None, and returns what it prints."""
        ran = subprocess.run([ARGS.nettrace, "record", "--no-symbols", "-o", self.trace, "-e", CALL, "--stacks=user",
                              "--", *(command or [program])], cwd=self.folder, stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.thread = pathlib.Path(program).name
        return ran.stdout

    def symbolize(self, *options):
        summary = json.loads(run(ARGS.nettrace, "symbolize", "--json", *options, self.trace))
        verified = subprocess.run([ARGS.nettrace, "verify", self.trace], stdout=subprocess.PIPE, check=False)
        self.assertEqual(verified.returncode, 0, verified.stdout.decode())
        return summary

    def stacks(self):
        """Returns the addresses and frames of the calls, and the mappings as (first, last, offset, path)."""
        events = list(commands.dump(ARGS.nettrace, self.trace, "--stacks", "--processes"))
        # The thread's name is checked, because other programs of this machine, such as shells, call getppid as well.
        calls = [event for event in events if event["name"] == "sys_enter_getppid" and event["thread"] == self.thread]
        self.assertEqual(len([event for event in calls if len(event["frames"]) > 2]), CALLS)
        pids = {event["pid"] for event in calls}
        self.assertEqual(len(pids), 1)
        mappings = [event["payload"] for event in events if event["name"] == "ProcessMapping" and event["pid"] in pids]
        return ([([int(address, 16) for address in event["stack"]], event["frames"]) for event in calls],
                [tuple(int(mapping[key]) for key in ("StartAddress", "EndAddress", "FileOffset")) + (mapping["FileName"],)
                 for mapping in mappings])

    def check(self, oracles, least):
        """Checks that at least 99 of 100 stacks are right: each frame in one of the files has the right function, and
        there are at least `least` of these frames. `oracles` has the Oracle of each file, by path."""
        calls, mappings = self.stacks()
        right, texts = 0, []
        for stack, frames in calls:
            checked, wrong = 0, []
            for index, (address, frame) in enumerate(zip(stack, frames)):
                code = address - (index > 0)
                for first, last, offset, path in mappings:
                    if not first <= code <= last or path not in oracles:
                        continue
                    names = oracles[path].names_at(code - first + offset)
                    if not names:  # The address is in no function: a wrong frame, after code without frame pointers.
                        continue
                    found = frame.split("!")[1].rsplit("+", 1)[0] if "!" in frame else None
                    checked += 1
                    if found not in names:
                        wrong.append((frame, names))
            right += checked >= least and not wrong
            texts += [f"{checked} of at least {least} frames checked; wrong: {wrong}; stack: {frames}"]
        self.assertGreaterEqual(right * 100, len(calls) * 99, texts[0])

    def recursion(self, *flags):
        return self.compile("program", RECURSION, *flags)

    def check_recursion(self, program, symbols):
        self.check({str(program): elf_functions.Oracle(symbols)}, DEPTH + 1)

    def test_programs_have_functions(self):
        for flags in (["-pie", "-fPIE"], ["-no-pie"], ["-static"], ["-static-pie"]):
            with self.subTest(flags=flags):
                program = self.recursion(*flags)
                self.record(program)
                summary = self.symbolize()
                self.assertIn(str(program), [module.get("source") for module in summary["modules"]])
                self.check_recursion(program, program)

    def strip(self, program, debug):
        debug.parent.mkdir(parents=True, exist_ok=True)
        symbols = self.folder / "symbols"
        shutil.copy(program, symbols)
        run("objcopy", "--only-keep-debug", program, debug)
        run("strip", program)
        return symbols

    def build_id(self, program):
        return re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", program))[1]

    def test_stripped_programs_have_functions_by_build_id(self):
        program = self.recursion()
        digits = self.build_id(program)
        debug = self.folder / "debug" / ".build-id" / digits[:2] / f"{digits[2:]}.debug"
        symbols = self.strip(program, debug)
        self.record(program)
        self.symbolize("--debug-dir", self.folder / "debug")
        self.check_recursion(program, symbols)

    def test_programs_that_are_gone_have_functions_by_build_id(self):
        program = self.recursion()
        digits = self.build_id(program)
        debug = self.folder / "debug" / ".build-id" / digits[:2] / f"{digits[2:]}.debug"
        symbols = self.strip(program, debug)
        self.record(program)
        program.unlink()
        self.symbolize("--debug-dir", self.folder / "debug")
        self.check_recursion(program, symbols)

    def test_stripped_programs_have_functions_by_debug_link(self):
        for flags in ([], ["-Wl,--build-id=none"]):
            with self.subTest(flags=flags):
                program = self.recursion(*flags)
                debug = self.folder / ".debug" / "program.debug"
                symbols = self.strip(program, debug)
                run("objcopy", f"--add-gnu-debuglink={debug}", program)
                self.record(program)
                self.symbolize()
                self.check_recursion(program, symbols)

    def test_stripped_programs_have_functions_by_compressed_symbols(self):
        program = self.recursion("-pie", "-fPIE")
        symbols = self.strip(program, self.folder / "debug")
        data = self.folder / "data.xz"
        data.write_bytes(lzma.compress(symbols.read_bytes()))
        run("objcopy", "--add-section", f".gnu_debugdata={data}", program)
        self.record(program)
        summary = self.symbolize()
        self.assertIn(str(program), [module.get("source") for module in summary["modules"]])
        self.check_recursion(program, symbols)

    def serve(self, path, file):
        """Serves a file at a path by HTTP. Returns the address of the server, and the list of paths that it was asked
        for."""
        asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                body = file.read_bytes() if self.path == path else b""
                self.send_response(200 if body else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}", asked

    @unittest.skipUnless(ctypes.util.find_library("debuginfod"), "libdebuginfod is not installed")
    def test_stripped_programs_have_functions_by_debuginfod_if_asked_for(self):
        program = self.recursion()
        symbols = self.strip(program, self.folder / "served")
        address, asked = self.serve(f"/buildid/{self.build_id(program)}/debuginfo", self.folder / "served")
        environment = {"DEBUGINFOD_URLS": address, "DEBUGINFOD_CACHE_PATH": str(self.folder / "cache")}
        self.record(program)
        with unittest.mock.patch.dict("os.environ", environment):
            self.symbolize()
            self.assertEqual(asked, [])
            self.symbolize("--debuginfod")
        self.assertIn(f"/buildid/{self.build_id(program)}/debuginfo", asked)
        self.check_recursion(program, symbols)

    def serve_bytes(self, send):
        """Runs a server that calls `send(connection)` for each connection. Returns its address."""
        listener = socket.create_server(("127.0.0.1", 0))
        ended = threading.Event()
        threads = []

        def answer(connection):
            with connection, contextlib.suppress(OSError):
                send(connection, ended)

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    threads.append(threading.Thread(target=answer, args=[listener.accept()[0]]))
                    threads[-1].start()

        def stop():
            ended.set()
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            acceptor.join()
            for thread in threads:
                thread.join()

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        self.addCleanup(stop)
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    def symbolize_by(self, send, **limits):
        """Starts `nettrace symbolize --debuginfod` for a stripped program, with a server that calls `send`."""
        program = self.recursion()
        self.strip(program, self.folder / "unused")
        self.record(program)
        environment = dict(os.environ, DEBUGINFOD_CACHE_PATH=str(self.folder / "cache"), **limits)
        if send is not None:
            environment["DEBUGINFOD_URLS"] = self.serve_bytes(send)
        return subprocess.Popen([ARGS.nettrace, "symbolize", "--debuginfod", "-o", self.folder / "named.nettrace",
                                 self.trace], env=environment, stderr=subprocess.PIPE, text=True)

    def check_bad_server(self, send, message, **limits):
        with self.symbolize_by(send, **limits) as process:
            # The limits of the test are 2 seconds and 1 MB. Without them, the command would wait for a minute.
            _, errors = process.communicate(timeout=50)
        self.assertEqual(process.returncode, 0, errors)
        self.assertRegex(errors, message)
        self.assertTrue((self.folder / "named.nettrace").exists())
        return errors

    @unittest.skipUnless(ctypes.util.find_library("debuginfod"), "libdebuginfod is not installed")
    def test_a_debuginfod_server_that_never_answers_is_given_up(self):
        errors = self.check_bad_server(lambda _, ended: ended.wait(),
                                       "did not send the file within 2s; set DEBUGINFOD_TIMEOUT", DEBUGINFOD_TIMEOUT="2")
        self.assertNotIn("DEBUGINFOD_MAXSIZE", errors)

    @unittest.skipUnless(ctypes.util.find_library("debuginfod"), "libdebuginfod is not installed")
    def test_a_debuginfod_server_that_sends_slowly_is_given_up(self):
        def send(connection, ended):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while not ended.wait(1):
                connection.sendall(b"x")

        self.check_bad_server(send, "did not send the file within 2s; set DEBUGINFOD_TIMEOUT", DEBUGINFOD_TIMEOUT="2")

    @unittest.skipUnless(ctypes.util.find_library("debuginfod"), "libdebuginfod is not installed")
    def test_a_debuginfod_server_that_sends_without_end_is_given_up(self):
        def send(connection, ended):
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while not ended.wait(0.05):
                connection.sendall(bytes(250_000))

        self.check_bad_server(send, "sent more than 1000000 bytes; set DEBUGINFOD_MAXSIZE", DEBUGINFOD_MAXSIZE="1000000")
        cached = sum(path.stat().st_size for path in (self.folder / "cache").rglob("*") if path.is_file())
        self.assertLess(cached, 1_000_000)

    @unittest.skipUnless(ctypes.util.find_library("debuginfod"), "libdebuginfod is not installed")
    def test_a_debuginfod_server_that_sends_garbage_adds_no_names(self):
        def send(connection, ended):
            # Requests for other files, such as libc if its symbols are not installed, must not use this connection.
            connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4000\r\n\r\n" + bytes(range(250)) * 16)
            ended.wait()

        self.check_bad_server(send, "sent a file that is not the one with this build id; delete /.*/cache/")

    @unittest.skipUnless(ctypes.util.find_library("debuginfod"), "libdebuginfod is not installed")
    def test_a_debuginfod_server_that_is_not_there_is_reported(self):
        # The port belongs to this test, which does not listen on it.
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            self.check_bad_server(None, "the debuginfod server cannot be used: Connection refused; correct DEBUGINFOD_URLS",
                                  DEBUGINFOD_URLS=f"http://127.0.0.1:{closed.getsockname()[1]}")

    @unittest.skipUnless(ctypes.util.find_library("debuginfod"), "libdebuginfod is not installed")
    def test_an_interrupt_ends_a_request_to_a_debuginfod_server(self):
        asked = threading.Event()

        def send(_, ended):
            asked.set()
            ended.wait()

        with self.symbolize_by(send) as process:
            self.assertTrue(asked.wait(30))
            process.send_signal(signal.SIGINT)
            # Without the signal, the request would take a minute.
            process.communicate(timeout=20)
        self.assertNotEqual(process.returncode, 0)
        self.assertFalse((self.folder / "named.nettrace").exists())

    def test_debuginfod_needs_servers(self):
        self.record(self.recursion())
        with unittest.mock.patch.dict("os.environ", {"DEBUGINFOD_URLS": ""}):
            ran = subprocess.run([ARGS.nettrace, "symbolize", "--debuginfod", self.trace], capture_output=True, text=True,
                                 check=False)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("DEBUGINFOD_URLS", ran.stderr)

    def test_plugins_have_functions(self):
        plugin = self.compile("plugin.so", PLUGIN, "-shared", "-fPIC")
        program = self.compile("loader", LOADER)
        self.record(program)
        self.symbolize()
        self.check({str(plugin): elf_functions.Oracle(plugin), str(program): elf_functions.Oracle(program)}, 3)

    def test_functions_of_cpp_are_readable(self):
        self.compile("program", RECURSION, language="c++")
        self.record("./program")
        self.symbolize()
        calls, _ = self.stacks()
        names = [frame.rsplit("+", 1)[0] for frame in calls[0][1]]
        self.assertIn(names.count("program!Shop::recurse()"), (DEPTH, DEPTH + 1), names)

    @unittest.skipIf(run("uname", "-m").strip() != "x86_64", "the code is for x86-64")
    def test_compiled_code_has_the_functions_of_its_perf_map(self):
        self.compile("jit", JIT)
        path = pathlib.Path(self.record("./jit").strip())
        self.addCleanup(path.unlink)
        self.symbolize()
        calls, _ = self.stacks()
        for _, frames in calls:
            self.assertTrue(any("!int [shop] Shop::Compiled()[Tier0]+0x6" in frame for frame in frames), frames)

    @unittest.skipIf(run("uname", "-m").strip() != "x86_64", "the code is for x86-64")
    def test_compiled_code_in_containers_has_the_functions_of_its_perf_map(self):
        self.compile("jit", JIT)
        os.mkfifo(self.folder / "end")
        end = os.open(self.folder / "end", os.O_RDWR)
        self.addCleanup(os.close, end)
        # In its namespaces, the process has another process id and another /tmp.
        contained = "unshare --mount --pid --fork sh -c 'mount -t tmpfs none /tmp && exec ./jit'"
        wait = "until [ -s printed ]; do sleep 0.05; done"
        self.record("jit", command=["sh", "-c", f"{contained} <end >printed 2>&1 & {wait}"])
        summary = self.symbolize()
        os.write(end, b"\n")
        maps = [module["path"] for module in summary["modules"] if "/root/tmp/perf-" in module["path"]]
        self.assertEqual(len(maps), 1, summary)
        calls, _ = self.stacks()
        for _, frames in calls:
            self.assertTrue(any("!int [shop] Shop::Compiled()[Tier0]+0x6" in frame for frame in frames), frames)

    def test_a_file_with_another_build_id_is_not_used(self):
        program = self.recursion()
        self.record(program)
        self.compile("program", RECURSION.replace("recurse", "another").replace(str(DEPTH), str(DEPTH + 1)))
        [module] = [module for module in self.symbolize()["modules"] if module["path"] == str(program)]
        self.assertEqual(module["named"], 0)
        self.assertIn("another build id", module["reason"])

    @unittest.skipIf([int(part) for part in re.findall(r"\d+", os.uname().release)[:2]] < [6, 11],
                     "the kernel states no build ids of mappings")
    def test_files_that_were_mapped_before_have_their_build_id(self):
        if run("stat", "-f", "-c", "%T", self.folder).strip() not in ("btrfs", "ext2/ext3", "overlayfs", "tmpfs", "xfs"):
            self.skipTest("the recorder does not ask for build ids on the file system of the folder for temporary files")
        program = self.compile("program", RECURSION.replace("return 0;", "for (;; usleep(1000)) recurse(0);"))
        running = subprocess.Popen([program])
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        digits = self.build_id(program)
        self.record("program", command=["sleep", "0.3"])
        program.unlink()
        self.compile("program", RECURSION)
        modules = {module["path"]: module for module in self.symbolize()["modules"]}
        self.assertEqual(modules[str(program)]["buildId"], digits)
        self.assertIn("another build id", modules[str(program)]["reason"])

    def test_functions_are_added_once(self):
        self.record(self.recursion())
        self.assertGreater(self.symbolize()["functions"], 0)
        before = self.trace.read_bytes()
        again = self.symbolize()
        self.assertEqual((again["functions"], again["bytes"]), (0, 0))
        self.assertEqual(self.trace.read_bytes(), before)


if __name__ == "__main__":
    script.run_cases(lambda: tracepoints.require(CALL))
