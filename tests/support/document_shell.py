"""Runs the commands of a document in order, in one shell in a temporary folder, and compares their output."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile

TIMEOUT = 1200
# Commands in the foreground that run until the user presses Ctrl-C. The shell runs them by endless(), see START.
ENDLESS = re.compile(r"^(?=nettrace record (?!.*(--duration| -- ))|nettrace ship (?!.*--once)|eventheader (watch|register --hold)|nettrace ctl tail)(?!.* &( |$))", re.MULTILINE)
# Lines that depend on the machine and its load. They are not compared.
INCIDENTAL = re.compile(r"^( +\d+ events? arrived late; |nettrace record: .*: services use shared memory, and connect to |"
                        r"nettrace record: the kernel's events are not available: ).*\n", re.MULTILINE)

START = r"""
set -o pipefail
# A command that fails ends the shell, unless the block allows its status. The status 141 is always allowed: bash sets it
# for a command whose output `head` no longer reads.
failed() { [[ " 0 141 $allowed " == *" $1 "* ]] || { echo "$block: $2: exit status $1" >&2; exit 1; }; }
trap 'failed $? "$BASH_COMMAND"' ERR

# Runs a command, and sends it SIGINT one second after it has installed a handler for SIGINT.
endless() {
  local pid status
  "$@" &
  pid=$!
  for _ in {1..600}; do
    status=$(<"/proc/$pid/status")
    [[ ! $status =~ Sig(Cgt|Blk):.[0-9a-f]{15}[2367abef] || $status = *Name:?bash* ]] || break
    sleep 0.2
  done
  sleep 1
  kill -INT "$pid"
  wait "$pid"
}

clean() { :; }
trap 'trap - ERR; clean; kill $(jobs -p) 2>/dev/null; wait' EXIT
allowed=
"""


class ShellError(Exception):
    """A command of a document that failed."""


def shapes(output):
    """Returns the lines without the parts that vary, as a set: numbers become N, times become T, and JSON becomes its keys
    with the types of their values."""
    return {_shape(line) for line in output.splitlines()}


def _shape(line):
    try:
        return json.dumps(_types(json.loads(line)))
    except ValueError:
        line = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "T", line)
        return re.sub(r"\d+(\.\d+)?", "N", re.sub(r"\s+", " ", line))


def _types(value):
    if isinstance(value, dict):
        return {key: _types(entry) for key, entry in sorted(value.items())}
    if isinstance(value, list):
        return [_types(entry) for entry in value[:1]]
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


def _put_programs(folder, programs):
    folder.mkdir()
    for program in programs:
        (folder / program.name).symlink_to(program.resolve())


def _command_file(folder, block, number, text):
    """Returns a file with the text, which the shell sources. If the text begins with "#!", the file runs it as a script."""
    file = folder / f"{block.document.replace('/', '.').replace(' ', '.')}-{block.line}-{number}"
    if text.startswith("#!"):
        script = file.with_suffix(".script")
        script.write_text(text, encoding="utf-8")
        script.chmod(0o755)
        text = f"{script}\n"
    file.write_text(ENDLESS.sub("endless ", text), encoding="utf-8")
    return file


def run(blocks, programs, before=None, each=False, files=(), environment=None):
    """Runs the blocks. The shell reads the script `before` first or, with `each`, before each block, with the text of the
    block in $NEXT. The script may define clean(), which is called at the end. `files` are blocks that the shell finds
    under the names in their markers. Raises ShellError if a command fails or its output differs."""
    with tempfile.TemporaryDirectory(prefix="document-") as name:
        top = pathlib.Path(name)
        folder, commands = top / "here", top / "commands"
        folder.mkdir()
        commands.mkdir()
        _put_programs(top / "bin", programs)
        for block in files:
            (folder / block.marker["as"]).write_text(block.text, encoding="utf-8")
        script, outputs = [START], []
        for index, block in enumerate(blocks):
            if before and (each or index == 0):
                script.append(f"block={before.name} allowed= NEXT={shlex.quote(block.text.strip())}\nsource {before}\n")
            script.append(f"block='{block.name}' allowed='{block.exits}'\n")
            for number, (text, printed) in enumerate(block.commands()):
                file = _command_file(commands, block, number, text if text.endswith("\n") else text + "\n")
                if printed is None:
                    script.append(f"source {file}\n")
                else:
                    outputs.append((block, text, printed, pathlib.Path(f"{file}.out")))
                    script.append(f"source {file} >{file}.out 2>&1\n")
        path = f"{top / 'bin'}{os.pathsep}{os.environ['PATH']}"
        script.append("true\n")  # The last command may have ended with an accepted status other than 0.
        done = subprocess.run(["bash", "-c", "".join(script)], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=TIMEOUT, check=False,
                              env={**os.environ, **(environment or {}), "PATH": path})
        if done.returncode != 0:
            said = "".join(file.read_text() for *_, file in outputs if file.exists())
            raise ShellError(f"{done.stdout[-3000:]}{said[-3000:]}the shell ended with exit status {done.returncode}")
        for block, text, printed, file in outputs:
            shown, wanted = (shapes(INCIDENTAL.sub("", output)) for output in (file.read_text(), printed))
            if shown != wanted:
                raise ShellError(f"{block.name}: {text}\nprints\n{file.read_text()}\nThe document shows\n{printed}\n"
                                 f"The lines that differ: {sorted(shown ^ wanted)}")
