// Writes events of the provider NetTrace-Test-Events for tests, and prints each event as a line of JSON. If the provider
// NetTrace-Test-Described is enabled too, also writes and prints its events, which are self-describing. Prints a DateTime
// as the number of units of 100 ns since 1601.
//
//   dotnet_events SECONDS COUNT [ROUNDS]    waits up to SECONDS until a tool enables the events, then writes each event
//                                           COUNT times; before each further round, reads a line from standard input and
//                                           waits again
//   dotnet_events spin SECONDS              only uses CPU time

using System;
using System.Collections.Generic;
using System.Diagnostics.Tracing;
using System.Runtime.CompilerServices;
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

    // WriteEvent has no overload for these types, so the values are passed as bytes.
    [Event(6, Level = EventLevel.Informational, Keywords = Keywords.Numbers)]
    public unsafe void Others(Guid guid, DateTime time, nint pointer, ByteKind kind, LongKind flags)
    {
        long ticks = time.ToFileTimeUtc();
        EventData* data = stackalloc EventData[5];
        data[0] = new EventData { DataPointer = (nint)(&guid), Size = sizeof(Guid) };
        data[1] = new EventData { DataPointer = (nint)(&ticks), Size = sizeof(long) };
        data[2] = new EventData { DataPointer = (nint)(&pointer), Size = sizeof(nint) };
        data[3] = new EventData { DataPointer = (nint)(&kind), Size = sizeof(ByteKind) };
        data[4] = new EventData { DataPointer = (nint)(&flags), Size = sizeof(LongKind) };
        WriteEventCore(6, 5, data);
    }

    // The runtime does not describe the fields of this event, because of the type byte[].
    [Event(7, Level = EventLevel.Informational, Keywords = Keywords.Numbers)]
    public void Bytes(byte[] bytes) => WriteEvent(7, bytes);
}

public enum ByteKind : byte { None, Some }

public enum LongKind : long { None, Big = 1L << 40 }

[EventData]
public struct Point
{
    public int X { get; set; }
    public string Name { get; set; }
}

[EventSource(Name = "NetTrace-Test-Described")]
internal sealed class DescribedEvents : EventSource
{
    public static readonly DescribedEvents Log = new();

    private DescribedEvents() : base(EventSourceSettings.EtwSelfDescribingEventFormat) { }

    [Event(1)]
    public void Arrays(sbyte[] i8, byte[] u8, short[] i16, ushort[] u16, int[] i32, uint[] u32, long[] i64, ulong[] u64,
                       float[] singles, double[] reals, nint[] pointers, char[] letters, Guid[] guids) =>
        WriteEvent(1, i8, u8, i16, u16, i32, u32, i64, u64, singles, reals, pointers, letters, guids);

    [Event(2)]
    public void Nested(Dictionary<string, int> map, Point point, List<int> list) => WriteEvent(2, map, point, list);

    [Event(3)]
    public void Singles(char letter, nint pointer, nuint handle, Guid guid, ByteKind kind, LongKind flags, DateTime time) =>
        WriteEvent(3, letter, pointer, handle, guid, kind, flags, time);
}

internal static class Program
{
    private static void Print(string name, object payload) =>
        Console.WriteLine(JsonSerializer.Serialize(new { name, payload }));

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static double PriceOfBasket(int count)
    {
        double sum = 0;
        for (int i = 0; i < count; ++i) sum += Math.Sqrt(i);
        return sum;
    }

    private static int Spin(double seconds)
    {
        Console.Error.WriteLine("ready " + Environment.ProcessId);
        DateTime end = DateTime.UtcNow.AddSeconds(seconds);
        double sum = 0;
        while (DateTime.UtcNow < end) sum += PriceOfBasket(100000);
        return sum > 0 ? 0 : 1;
    }

    private static async Task<int> Main(string[] args)
    {
        if (args.Length == 2 && args[0] == "spin") return Spin(double.Parse(args[1]));
        int rounds = 1;
        if (args.Length is not (2 or 3) || !int.TryParse(args[0], out int seconds) ||
            !int.TryParse(args[1], out int count) || (args.Length == 3 && !int.TryParse(args[2], out rounds)))
        {
            Console.Error.WriteLine("usage: dotnet_events SECONDS COUNT [ROUNDS]");
            return 2;
        }
        TestEvents.Log.EventCommandExecuted += (_, command) => isReady |= command.Command == EventCommand.Enable;
        Console.Error.WriteLine("ready " + Environment.ProcessId);
        for (int round = 0; round < rounds; ++round)
        {
            if (round != 0 && Console.ReadLine() == null) return 1;
            if (!await WriteRound(seconds, count)) return 1;
        }
        TestEvents.Log.Detail("not enabled");  // its level is above that of the tests
        GC.Collect();
        GC.WaitForPendingFinalizers();  // the runtime writes their events after those of the collection
        return 0;
    }

    // Whether the runtime has enabled all events of TestEvents. On a busy machine, IsEnabled() returned true while the
    // first event was not written yet.
    private static volatile bool isReady;

    // Returns false if no tool enables the events.
    private static async Task<bool> WriteRound(int seconds, int count)
    {
        TestEvents log = TestEvents.Log;
        DateTime end = DateTime.UtcNow.AddSeconds(seconds);
        while (!isReady || !log.IsEnabled(EventLevel.Informational, TestEvents.Keywords.Work))
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
            WriteOthers(log, i);
            if (DescribedEvents.Log.IsEnabled()) WriteDescribed(DescribedEvents.Log, i);
            log.WorkStop(i);
            Print("WorkStop", new { id = i });
        }
        Console.Error.WriteLine("written");
        return true;
    }
    private static readonly DateTime Start = new(2026, 11, 26, 1, 2, 3, DateTimeKind.Utc);

    private static Guid MakeGuid(int i) => new(0x00112233, 0x4455, 0x6677, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, (byte)i);

    private static void WriteOthers(TestEvents log, int i)
    {
        DateTime time = Start.AddTicks(i);
        Guid guid = MakeGuid(i);
        log.Others(guid, time, -i, ByteKind.Some, LongKind.Big);
        Print("Others", new { guid, time = $"{time.ToFileTimeUtc()}", pointer = -i, kind = ByteKind.Some, flags = LongKind.Big });
        log.Bytes([1, 2, (byte)i]);
        Print("Bytes", new { });
    }

    private static void WriteDescribed(DescribedEvents log, int i)
    {
        Guid guid = MakeGuid(i);
        DateTime time = Start.AddTicks(i);
        log.Arrays([(sbyte)-i, 1], [(byte)i], [(short)-i], [(ushort)i], [-i, i], [(uint)i], [-1L << i], [1UL << i],
                   [i / 2f], [i / 4.0, -i], [-i], ['x', '€'], [guid, Guid.Empty]);
        Print("Arrays", new { i8 = new[] { -i, 1 }, u8 = new[] { i }, i16 = new[] { -i }, u16 = new[] { i },
                              i32 = new[] { -i, i }, u32 = new[] { i }, i64 = new[] { -1L << i }, u64 = new[] { 1UL << i },
                              singles = new[] { i / 2f }, reals = new[] { i / 4.0, -i }, pointers = new[] { -i },
                              letters = "x€", guids = new[] { guid, Guid.Empty } });
        Point point = new() { X = i, Name = "point " + i };
        log.Nested(new() { ["one"] = i, ["two"] = 2 }, point, [i, -i]);
        Print("Nested", new { map = new[] { new { Key = "one", Value = i }, new { Key = "two", Value = 2 } }, point,
                              list = new[] { i, -i } });
        log.Singles('€', -i, (nuint)i, guid, ByteKind.Some, LongKind.Big, time);
        Print("Singles", new { letter = "€", pointer = -i, handle = i, guid, kind = ByteKind.Some, flags = LongKind.Big,
                               time = $"{time.ToFileTimeUtc()}" });
    }
}
