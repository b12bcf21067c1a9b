// Exit codes of the programs. Each program's manual page lists those that it uses.
#ifndef TOOLS_CLI_EXIT_CODES_H_
#define TOOLS_CLI_EXIT_CODES_H_

namespace cli {

inline constexpr int kExitOk = 0;
// The program failed; standard error says why.
inline constexpr int kExitFailed = 1;
// An input is truncated or damaged, or cannot be read to its end. The program has processed the
// other parts.
inline constexpr int kExitDamaged = 1;
// The input, a file or a name, breaks rules of its format.
inline constexpr int kExitViolations = 1;
// The command line is wrong.
inline constexpr int kExitUsage = 2;
// An input cannot be read at all.
inline constexpr int kExitUnreadable = 2;
// A selector, name or pattern matched nothing, or a given program has no events. Standard error
// names the argument. Everything else that was requested is done.
inline constexpr int kExitUnmatched = 3;
// The object to remove is in use; standard error names its users.
inline constexpr int kExitInUse = 4;
// A name already belongs to another definition; standard error shows that definition.
inline constexpr int kExitTaken = 5;
// A program whose task is to find problems has found one.
inline constexpr int kExitFound = 6;
// A file of settings or registrations is wrong: EX_CONFIG of sysexits(3), which systemd shows as
// 78/CONFIG.
inline constexpr int kExitConfiguration = 78;
// A wait timed out. timeout(1) has the same exit code for this case.
inline constexpr int kExitTimedOut = 124;
// A command cannot be started. A shell uses this number if it cannot find a command.
inline constexpr int kExitNoCommand = 127;
// A signal ended a command. The exit code is this constant plus the signal's number, as in a shell.
inline constexpr int kExitSignalled = 128;

}  // namespace cli

#endif  // TOOLS_CLI_EXIT_CODES_H_
