// Prints what TraceEvent reads from a .nettrace file: one JSON object per event, in the order in
// which TraceEvent shows them, and a last object with its totals.
//
//   traceevent FILE                   as programs that read events do (EventPipeEventSource)
//   traceevent --log FILE             as PerfView does: converted to a TraceLog, with processes and stacks
//   traceevent --log --continue FILE  as --log, with "continue on error"
//   traceevent --totals FILE...       as without options, but only the last object of each file
//   traceevent --both FILE...         each file as without options, then as with --log
//
// Exit code 0: read to the end; 1: TraceEvent threw (the last line says what); 2: wrong usage.

using System;
using System.Collections;
using System.Collections.Generic;
using System.IO;
using System.Text.Encodings.Web;
using System.Text.Json;
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Etlx;
using Microsoft.Diagnostics.Tracing.EventPipe;
using Microsoft.Diagnostics.Tracing.Parsers.Clr;
using Microsoft.Diagnostics.Tracing.Stacks;
using Microsoft.Diagnostics.Symbols;

internal static class Program
{
    private static readonly JsonWriterOptions Options =
        new() { Encoder = JavaScriptEncoder.UnsafeRelaxedJsonEscaping, SkipValidation = true };

    private static int Main(string[] args)
    {
        using Stream output = new BufferedStream(Console.OpenStandardOutput(), 1 << 20);
        if (args.Length > 1 && args[0] == "--totals")
        {
            int result = 0;
            foreach (string file in args[1..]) result |= PrintSource(output, file, totalsOnly: true);
            return result;
        }
        if (args.Length > 1 && args[0] == "--both")
        {
            int result = 0;
            foreach (string file in args[1..])
            {
                result |= PrintSource(output, file) | PrintLog(output, file, continueOnError: false);
                // If TraceEvent ends the process, the reader sees at which file.
                output.Flush();
            }
            return result;
        }
        bool log = args.Length > 1 && args[0] == "--log";
        bool continueOnError = log && args.Length > 2 && args[1] == "--continue";
        int options = (log ? 1 : 0) + (continueOnError ? 1 : 0);
        if (args.Length != options + 1 || args[options].StartsWith('-'))
        {
            Console.Error.WriteLine("usage: traceevent [--log [--continue]] FILE\n       traceevent --totals FILE...\n" +
                                    "       traceevent --both FILE...");
            return 2;
        }
        return log ? PrintLog(output, args[options], continueOnError) : PrintSource(output, args[options]);
    }

    private static int PrintSource(Stream output, string file, bool totalsOnly = false)
    {
        Exception? failure = null;
        long events = 0;
        long payloadFailures = 0;
        int lost = 0;
        Dictionary<string, string> header = new();
        try
        {
            using EventPipeEventSource source = new(file);
            // TraceEvent uses the file's own metadata only if the dynamic parser has a subscriber.
            // AllEvents comes after it, and also sees events that no parser knows.
            source.Dynamic.All += static _ => { };
            source.AllEvents += traceEvent =>
            {
                ++events;
                if (!(totalsOnly ? TryReadAll(traceEvent) : WriteEvent(output, traceEvent))) ++payloadFailures;
            };
            try
            {
                source.Process();
            }
            finally
            {
                lost = source.EventsLost;
                header = source.HeaderKeyValuePairs;
            }
        }
        catch (Exception exception)
        {
            failure = exception;
        }
        WriteTotals(output, events, payloadFailures, lost, failure, json =>
        {
            json.WritePropertyName("header");
            WriteValue(json, header);
        });
        return failure == null ? 0 : 1;
    }

    private static int PrintLog(Stream output, string file, bool continueOnError)
    {
        Exception? failure = null;
        long events = 0;
        long payloadFailures = 0;
        TraceLog? log = null;
        string converted = Path.Combine(Path.GetTempPath(), Path.GetRandomFileName() + ".etlx");
        SortedDictionary<string, long> typed = new(StringComparer.Ordinal);
        List<StartStopActivity> activities = new();
        SortedDictionary<string, double> threadTimes = new(StringComparer.Ordinal);
        try
        {
            TraceLogOptions options = new() { ContinueOnError = continueOnError, ConversionLog = TextWriter.Null };
            TraceLog.CreateFromEventPipeDataFile(file, converted, options);
            log = new TraceLog(converted);
            // Enumerating a log without events is an error in TraceEvent.
            if (log.EventCount > 0)
            {
                bool hasSwitches = false, hasOtherCpus = false;
                TraceEventStackSource stacks = new(log.Events);
                foreach (TraceEvent traceEvent in log.Events)
                {
                    ++events;
                    if (!WriteEvent(output, traceEvent, stacks)) ++payloadFailures;
                    hasSwitches |= traceEvent.ProviderName == "Universal.Events" && traceEvent.EventName.StartsWith("cswitch");
                    hasOtherCpus |= traceEvent.ProcessorNumber >= log.NumberOfProcessors;
                }
                // The view indexes an array of the file's HardwareThreadCount by the CPUs of events.
                if (hasSwitches && !hasOtherCpus) AddThreadTimes(log, threadTimes);
                CountTyped(log, typed);
                FindActivities(log, activities);
            }
        }
        catch (Exception exception)
        {
            failure = exception;
        }
        WriteTotals(output, events, payloadFailures, log?.EventsLost ?? 0, failure, json =>
        {
            json.WriteBoolean("truncated", log?.Truncated ?? false);
            json.WriteStartArray("processes");
            if (log != null) foreach (TraceProcess process in log.Processes) WriteProcess(json, process);
            json.WriteEndArray();
            WriteCodeAddresses(json, log);
            json.WriteStartObject("typed");
            foreach (KeyValuePair<string, long> entry in typed) json.WriteNumber(entry.Key, entry.Value);
            json.WriteEndObject();
            json.WriteStartObject("threadTimes");
            foreach (KeyValuePair<string, double> entry in threadTimes) json.WriteNumber(entry.Key, entry.Value);
            json.WriteEndObject();
            json.WriteStartArray("activities");
            foreach (StartStopActivity activity in activities) WriteActivity(json, activity);
            json.WriteEndArray();
        });
        log?.Dispose();
        File.Delete(converted);
        return failure == null ? 0 : 1;
    }

    // Counts the events that TraceEvent's own parsers of the .NET runtime's providers recognise.
    // The parsers identify events by provider and id, without the file's metadata.
    private static void CountTyped(TraceLog log, SortedDictionary<string, long> typed)
    {
        TraceLogEventSource source = log.Events.GetSource();
        Action<TraceEvent> count = traceEvent =>
        {
            string name = traceEvent.ProviderName + ":" + traceEvent.EventName;
            typed[name] = typed.GetValueOrDefault(name) + 1;
        };
        source.Clr.All += count;
        new ClrRundownTraceEventParser(source).All += count;
        new SampleProfilerTraceEventParser(source).All += count;
        source.Process();
    }

    // Adds up the times, in ms, that PerfView's view Thread Time shows, by thread and kind, such as "Thread (12) CPU_TIME".
    private static void AddThreadTimes(TraceLog log, SortedDictionary<string, double> times)
    {
        using SymbolReader symbols = new(TextWriter.Null);
        MutableTraceEventStackSource stacks = new(log);
        new ThreadTimeStackComputer(log, symbols).GenerateThreadTimeStacks(stacks);
        stacks.ForEach(sample =>
        {
            string thread = "", kind = "";
            for (StackSourceCallStackIndex stack = sample.StackIndex; stack != StackSourceCallStackIndex.Invalid;
                 stack = stacks.GetCallerIndex(stack))
            {
                string name = stacks.GetFrameName(stacks.GetFrameIndex(stack), false);
                if (kind == "" && name.EndsWith("_TIME")) kind = name;
                if (name.StartsWith("Thread (")) thread = name[..(name.IndexOf(')') + 1)];
            }
            string key = thread + " " + kind;
            times[key] = times.GetValueOrDefault(key) + sample.Metric;
        });
    }

    // Adds the start-stop activities that PerfView shows, in the order in which they stop.
    private static void FindActivities(TraceLog log, List<StartStopActivity> activities)
    {
        TraceLogEventSource source = log.Events.GetSource();
        using SymbolReader symbols = new(TextWriter.Null);
        StartStopActivityComputer computer = new(source, new ActivityComputer(source, symbols));
        computer.Stop += (activity, stop) => activities.Add(activity);
        source.Process();
    }

    private static void WriteActivity(Utf8JsonWriter json, StartStopActivity activity)
    {
        json.WriteStartObject();
        json.WriteString("name", activity.Name);
        json.WriteString("task", activity.TaskName);
        json.WriteNumber("pid", activity.ProcessID);
        json.WriteString("id", activity.ActivityID);
        json.WriteString("parentId", activity.Creator?.ActivityID.ToString());
        json.WriteNumber("startMs", activity.StartTimeRelativeMSec);
        json.WriteNumber("durationMs", activity.DurationMSec);
        json.WriteEndObject();
    }

    // Writes the number of code addresses in stacks, and how many of them have a method name.
    private static void WriteCodeAddresses(Utf8JsonWriter json, TraceLog? log)
    {
        int resolved = 0;
        SortedSet<string> methods = new(StringComparer.Ordinal);
        foreach (TraceCodeAddress address in log?.CodeAddresses ?? Array.Empty<TraceCodeAddress>() as IEnumerable<TraceCodeAddress>)
        {
            if (address.Method == null) continue;
            ++resolved;
            methods.Add(address.FullMethodName);
        }
        json.WriteNumber("codeAddresses", log?.CodeAddresses.Count ?? 0);
        json.WriteNumber("resolved", resolved);
        json.WriteNumber("methods", methods.Count);
    }

    private static void WriteProcess(Utf8JsonWriter json, TraceProcess process)
    {
        json.WriteStartObject();
        json.WriteNumber("pid", process.ProcessID);
        json.WriteString("name", process.Name);
        json.WriteString("image", process.ImageFileName);
        json.WriteString("commandLine", process.CommandLine);
        json.WriteNumber("startMs", process.StartTimeRelativeMsec);
        json.WriteNumber("endMs", process.EndTimeRelativeMsec);
        json.WriteString("start", process.StartTime.ToUniversalTime().ToString("O"));
        json.WriteString("end", process.EndTime.ToUniversalTime().ToString("O"));
        json.WriteEndObject();
    }

    private static void WriteTotals(Stream output, long events, long payloadFailures, int lost, Exception? failure,
                                    Action<Utf8JsonWriter> writeMore)
    {
        using (Utf8JsonWriter json = new(output, Options))
        {
            json.WriteStartObject();
            json.WriteBoolean("end", true);
            json.WriteNumber("events", events);
            json.WriteNumber("lost", lost);
            json.WriteNumber("payloadFailures", payloadFailures);
            json.WriteString("exception", failure?.ToString());
            writeMore(json);
            json.WriteEndObject();
        }
        output.WriteByte((byte)'\n');
    }

    // Returns false if a payload value could not be read; its place then has the reason. An event
    // of a TraceLog has a process, a time since the trace's start, and a stack.
    private static bool WriteEvent(Stream output, TraceEvent traceEvent, TraceEventStackSource? stacks = null)
    {
        bool readable = true;
        using (Utf8JsonWriter json = new(output, Options))
        {
            json.WriteStartObject();
            json.WriteNumber("timestamp", traceEvent.TimeStampQPC);
            json.WriteString("time", traceEvent.TimeStamp.ToUniversalTime().ToString("O"));
            json.WriteString("provider", traceEvent.ProviderName);
            json.WriteString("providerGuid", traceEvent.ProviderGuid);
            json.WriteString("name", traceEvent.EventName);
            json.WriteString("opcodeName", traceEvent.OpcodeName);
            json.WriteNumber("id", (ushort)traceEvent.ID);
            json.WriteNumber("version", traceEvent.Version);
            json.WriteNumber("level", (byte)traceEvent.Level);
            json.WriteString("keywords", "0x" + ((ulong)traceEvent.Keywords).ToString("x"));
            json.WriteNumber("opcode", (byte)traceEvent.Opcode);
            json.WriteNumber("pid", traceEvent.ProcessID);
            json.WriteNumber("tid", traceEvent.ThreadID);
            json.WriteNumber("cpu", traceEvent.ProcessorNumber);
            json.WriteString("activityId", traceEvent.ActivityID);
            json.WriteString("relatedActivityId", traceEvent.RelatedActivityID);
            json.WriteNumber("payloadSize", traceEvent.EventDataLength);
            json.WriteString("kind", traceEvent.GetType().Name);
            if (stacks != null)
            {
                json.WriteNumber("relativeMs", traceEvent.TimeStampRelativeMSec);
                json.WriteString("process", traceEvent.Process()?.Name);
                WriteStack(json, traceEvent.CallStack());
                json.WriteBoolean("broken", IsBroken(stacks, traceEvent.CallStackIndex()));
            }
            json.WritePropertyName("payload");
            json.WriteStartObject();
            string[] names = traceEvent.PayloadNames ?? Array.Empty<string>();
            for (int i = 0; i < names.Length; ++i)
            {
                json.WritePropertyName(names[i]);
                if (!TryRead(traceEvent, i, out object? value)) readable = false;
                WriteValue(json, value);
            }
            json.WriteEndObject();
            json.WriteEndObject();
        }
        output.WriteByte((byte)'\n');
        return readable;
    }

    // Returns false if a payload value could not be read; `value` then has the reason.
    private static bool TryRead(TraceEvent traceEvent, int field, out object? value)
    {
        try
        {
            value = traceEvent.PayloadValue(field);
        }
        catch (Exception exception)
        {
            value = "EXCEPTION " + exception.GetType().Name + ": " + exception.Message;
            return false;
        }
        // TraceEvent returns this text instead of a value if its own code threw.
        return !(value is string text && text.StartsWith("<<<EXCEPTION"));
    }

    private static bool TryReadAll(TraceEvent traceEvent)
    {
        bool readable = true;
        for (int i = 0; i < (traceEvent.PayloadNames?.Length ?? 0); ++i) readable &= TryRead(traceEvent, i, out _);
        return readable;
    }

    // Writes the frames, innermost first: MODULE!METHOD as far as they are known, or an address.
    private static void WriteStack(Utf8JsonWriter json, TraceCallStack? stack)
    {
        json.WriteStartArray("stack");
        for (; stack != null; stack = stack.Caller)
        {
            string method = stack.CodeAddress.FullMethodName;
            string module = stack.CodeAddress.ModuleName;
            json.WriteStringValue(module.Length > 0 ? module + "!" + method : method.Length > 0 ? method
                : "0x" + stack.CodeAddress.Address.ToString("x"));
        }
        json.WriteEndArray();
    }

    // Returns whether PerfView shows the frame BROKEN as the caller of the outermost frame.
    private static bool IsBroken(TraceEventStackSource stacks, CallStackIndex index)
    {
        if (index == CallStackIndex.Invalid) return false;
        for (StackSourceCallStackIndex stack = StackSourceCallStackIndex.Start + (int)index;
             stack != StackSourceCallStackIndex.Invalid; stack = stacks.GetCallerIndex(stack))
        {
            if (stacks.GetFrameIndex(stack) == StackSourceFrameIndex.Broken) return true;
        }
        return false;
    }

    private static void WriteValue(Utf8JsonWriter json, object? value)
    {
        switch (value)
        {
            case null: json.WriteNullValue(); break;
            case string text: json.WriteStringValue(text); break;
            case char unit: json.WriteStringValue(unit.ToString()); break;
            case bool flag: json.WriteBooleanValue(flag); break;
            case sbyte or short or int or long: json.WriteNumberValue(Convert.ToInt64(value)); break;
            case byte or ushort or uint or ulong: json.WriteNumberValue(Convert.ToUInt64(value)); break;
            case float number: WriteDouble(json, number); break;
            case double number: WriteDouble(json, number); break;
            case Guid guid: json.WriteStringValue(guid); break;
            case DateTime time: json.WriteStringValue(time.ToUniversalTime().ToString("O")); break;
            case IEnumerable<KeyValuePair<string, object>> members:
                json.WriteStartObject();
                foreach (KeyValuePair<string, object> member in members)
                {
                    json.WritePropertyName(member.Key);
                    WriteValue(json, member.Value);
                }
                json.WriteEndObject();
                break;
            case IDictionary<string, string> pairs:
                json.WriteStartObject();
                foreach (KeyValuePair<string, string> pair in pairs) json.WriteString(pair.Key, pair.Value);
                json.WriteEndObject();
                break;
            case IEnumerable elements:
                json.WriteStartArray();
                foreach (object? element in elements) WriteValue(json, element);
                json.WriteEndArray();
                break;
            default: json.WriteStringValue(value.GetType().FullName + " " + value); break;
        }
    }

    // JSON has neither infinities nor NaN.
    private static void WriteDouble(Utf8JsonWriter json, double number)
    {
        if (double.IsFinite(number)) json.WriteNumberValue(number);
        else json.WriteStringValue(double.IsNaN(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity");
    }
}
