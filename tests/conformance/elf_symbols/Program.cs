// Looks up the functions of a .nettrace file in a folder of symbols, as PerfView does with "Lookup Symbols". Prints each
// function of the stacks as MODULE!FUNCTION, once and sorted. The log of the search goes to standard error.
//
//   elf_symbols FOLDER FILE

using System;
using System.Collections.Generic;
using System.IO;
using Microsoft.Diagnostics.Symbols;
using Microsoft.Diagnostics.Tracing.Etlx;

internal static class Program
{
    private static int Main(string[] args)
    {
        if (args.Length != 2)
        {
            Console.Error.WriteLine("usage: elf_symbols FOLDER FILE");
            return 2;
        }
        string converted = Path.Combine(Path.GetTempPath(), Path.GetRandomFileName() + ".etlx");
        TraceLog.CreateFromEventPipeDataFile(args[1], converted, new TraceLogOptions { ConversionLog = TextWriter.Null });
        using (TraceLog log = new(converted))
        using (SymbolReader symbols = new(Console.Error, args[0]))
        {
            symbols.SecurityCheck = static _ => true;
            foreach (TraceModuleFile file in log.ModuleFiles) log.CodeAddresses.LookupSymbolsForModule(symbols, file);
            SortedSet<string> functions = new(StringComparer.Ordinal);
            foreach (TraceCodeAddress address in log.CodeAddresses)
            {
                if (address.Method != null) functions.Add(address.ModuleName + "!" + address.FullMethodName);
            }
            foreach (string function in functions) Console.WriteLine(function);
        }
        File.Delete(converted);
        return 0;
    }
}
