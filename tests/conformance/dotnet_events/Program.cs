// Waits until a tool enables its events, writes them, and prints each as a line of JSON.
// Usage: dotnet_events SECONDS COUNT [ROUNDS]; SECONDS limits the wait. Before each round but the first, the program
// reads a line from standard input, and waits again.

using System;
using System.Diagnostics.Tracing;
using System.Text.Json;
using System.Threading;
using System.Threading.Tasks;

[EventSource(Name = "NetTrace-Test-Events")]
internal sealed class TestEvents : EventSource
{
    public static readonly TestEvents Log = new();

    public static class Keywords
    {
        public const EventKeywords Numbers = (EventKeywords)1;
        public const EventKeywords Work = (EventKeywords)2;
    }

    [Event(1, Level = EventLevel.Informational, Keywords = Keywords.Numbers, Version = 3)]
    public void Numbers(sbyte small, byte octet, short i16, ushort u16, int i32, uint u32, long i64, ulong u64,
                        float single, double real) =>
        WriteEvent(1, small, octet, i16, u16, i32, u32, i64, u64, single, real);

    [Event(2, Level = EventLevel.Warning, Keywords = Keywords.Numbers)]
    public void Texts(string text, bool yes, char letter, DayOfWeek day) => WriteEvent(2, text, yes, letter, day);

    [Event(3, Keywords = Keywords.Work, Opcode = EventOpcode.Start)]
    public void WorkStart(int id) => WriteEvent(3, id);

    [Event(4, Keywords = Keywords.Work, Opcode = EventOpcode.Stop)]
    public void WorkStop(int id) => WriteEvent(4, id);

    [Event(5, Level = EventLevel.Verbose)]
    public void Detail(string text) => WriteEvent(5, text);
}

internal static class Program
{
    private static void Print(string name, object payload) =>
        Console.WriteLine(JsonSerializer.Serialize(new { name, payload }));

    private static async Task<int> Main(string[] args)
    {
        int rounds = 1;
        if (args.Length is not (2 or 3) || !int.TryParse(args[0], out int seconds) ||
            !int.TryParse(args[1], out int count) || (args.Length == 3 && !int.TryParse(args[2], out rounds)))
        {
            Console.Error.WriteLine("usage: dotnet_events SECONDS COUNT [ROUNDS]");
            return 2;
        }
        Console.Error.WriteLine("ready " + Environment.ProcessId);
        for (int round = 0; round < rounds; ++round)
        {
            if (round != 0 && Console.ReadLine() == null) return 1;
            if (!await WriteRound(seconds, count)) return 1;
        }
        TestEvents.Log.Detail("not enabled");  // its level is above that of the tests
        GC.Collect();
        return 0;
    }

    // Returns false if no tool enables the events.
    private static async Task<bool> WriteRound(int seconds, int count)
    {
        TestEvents log = TestEvents.Log;
        DateTime end = DateTime.UtcNow.AddSeconds(seconds);
        while (!log.IsEnabled(EventLevel.Informational, TestEvents.Keywords.Work))
        {
            if (DateTime.UtcNow > end) return false;
            Thread.Sleep(20);
        }
        // The runtime's own events are enabled just after those of EventSources.
        Thread.Sleep(500);
        for (int i = 0; i < count; ++i)
        {
            int n = -i;
            log.WorkStart(i);
            Print("WorkStart", new { id = i });
            await Task.Yield();
            log.Numbers((sbyte)n, (byte)i, (short)n, (ushort)i, n, (uint)i, (long)n << 40, (ulong)i << 40, i / 2f, i / 4.0);
            Print("Numbers", new { small = (sbyte)n, octet = (byte)i, i16 = (short)n, u16 = (ushort)i, i32 = n,
                                   u32 = (uint)i, i64 = (long)n << 40, u64 = (ulong)i << 40, single = i / 2f,
                                   real = i / 4.0 });
            string text = i % 2 == 0 ? "plain " + i : "grüße € 😀 " + i;
            log.Texts(text, i % 3 == 0, 'x', DayOfWeek.Friday);
            Print("Texts", new { text, yes = i % 3 == 0, letter = "x", day = (int)DayOfWeek.Friday });
            log.WorkStop(i);
            Print("WorkStop", new { id = i });
        }
        Console.Error.WriteLine("written");
        return true;
    }
}
