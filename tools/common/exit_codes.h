// The exit codes of the programs. Each program's manual page says which of them it uses, and why.
#ifndef TOOLS_COMMON_EXIT_CODES_H_
#define TOOLS_COMMON_EXIT_CODES_H_

namespace tools {

inline constexpr int kExitOk = 0;
// It failed; standard error says why.
inline constexpr int kExitFailed = 1;
// The input is cut or damaged; all that came before the damage was shown.
inline constexpr int kExitDamaged = 1;
// The input breaks rules of its format.
inline constexpr int kExitViolations = 1;
// The command line is wrong.
inline constexpr int kExitUsage = 2;
// An input cannot be read at all.
inline constexpr int kExitUnreadable = 2;
// It did what it could, and a selector selected nothing; standard error names it.
inline constexpr int kExitUnmatched = 3;
// What is to go is in use; standard error says by whom.
inline constexpr int kExitInUse = 4;
// A name is taken by another definition; standard error shows it.
inline constexpr int kExitTaken = 5;
// A search for what is wrong has found something.
inline constexpr int kExitFound = 6;
// A file of settings is wrong: EX_CONFIG of sysexits(3), which systemd shows as 78/CONFIG.
inline constexpr int kExitConfiguration = 78;
// What was waited for did not come in time; the number is that of timeout(1).
inline constexpr int kExitTimedOut = 124;
// A command cannot be started; the number is a shell's.
inline constexpr int kExitNoCommand = 127;
// A command was ended by a signal: this + the signal's number, as in a shell.
inline constexpr int kExitSignalled = 128;

}  // namespace tools

#endif  // TOOLS_COMMON_EXIT_CODES_H_
