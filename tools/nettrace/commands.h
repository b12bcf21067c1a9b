// The subcommands of `nettrace`. Each function adds a subcommand to the command line. When the user
// selects the subcommand, it runs and sets the exit code.
#ifndef TOOLS_NETTRACE_COMMANDS_H_
#define TOOLS_NETTRACE_COMMANDS_H_

namespace CLI {
class App;
}

namespace tools {

void AddRecord(CLI::App& app, int* exit_code);
void AddDump(CLI::App& app, int* exit_code);
void AddInfo(CLI::App& app, int* exit_code);
void AddVerify(CLI::App& app, int* exit_code);
void AddRepair(CLI::App& app, int* exit_code);
void AddCut(CLI::App& app, int* exit_code);
void AddMerge(CLI::App& app, int* exit_code);
void AddSymbolize(CLI::App& app, int* exit_code);
void AddExport(CLI::App& app, int* exit_code);
void AddImport(CLI::App& app, int* exit_code);
void AddTop(CLI::App& app, int* exit_code);
void AddQuery(CLI::App& app, int* exit_code);
void AddReport(CLI::App& app, int* exit_code);
void AddShip(CLI::App& app, int* exit_code);
void AddCtl(CLI::App& app, int* exit_code);

}  // namespace tools

#endif  // TOOLS_NETTRACE_COMMANDS_H_
