// Prints what TraceEvent makes of a .nettrace file: one JSON object per event, in the order in which
// TraceEvent shows them, and one last object with its totals. Usage: traceevent FILE
// Exit code 0: read to the end; 1: TraceEvent threw (the last line says what); 2: wrong usage.

using System;
using System.Collections;
using System.Collections.Generic;
using System.IO;
using System.Text.Encodings.Web;
using System.Text.Json;
using Microsoft.Diagnostics.Tracing;

internal static class Program
{
    private static readonly JsonWriterOptions Options =
        new() { Encoder = JavaScriptEncoder.UnsafeRelaxedJsonEscaping, SkipValidation = true };

    private static int Main(string[] args)
    {
        if (args.Length != 1 || args[0].StartsWith('-'))
        {
            Console.Error.WriteLine("usage: traceevent FILE");
            return 2;
        }
        using Stream output = new BufferedStream(Console.OpenStandardOutput(), 1 << 20);
        Exception? failure = null;
        long events = 0;
        long payloadFailures = 0;
        int lost = 0;
        Dictionary<string, string> header = new();
        try
        {
            using EventPipeEventSource source = new(args[0]);
            // Subscribing to the dynamic parser is what makes TraceEvent use the file's own metadata;
            // AllEvents comes after it and sees also what no parser knows.
            source.Dynamic.All += static _ => { };
            source.AllEvents += traceEvent =>
            {
                ++events;
                if (!WriteEvent(output, traceEvent)) ++payloadFailures;
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

        using (Utf8JsonWriter json = new(output, Options))
        {
            json.WriteStartObject();
            json.WriteBoolean("end", true);
            json.WriteNumber("events", events);
            json.WriteNumber("lost", lost);
            json.WriteNumber("payloadFailures", payloadFailures);
            json.WriteString("exception", failure?.ToString());
            json.WritePropertyName("header");
            WriteValue(json, header);
            json.WriteEndObject();
        }
        output.WriteByte((byte)'\n');
        return failure == null ? 0 : 1;
    }

    // Returns false if a payload value could not be read; its place then says why.
    private static bool WriteEvent(Stream output, TraceEvent traceEvent)
    {
        bool readable = true;
        using (Utf8JsonWriter json = new(output, Options))
        {
            json.WriteStartObject();
            json.WriteNumber("timestamp", traceEvent.TimeStampQPC);
            json.WriteString("time", traceEvent.TimeStamp.ToUniversalTime().ToString("O"));
            json.WriteString("provider", traceEvent.ProviderName);
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
            json.WritePropertyName("payload");
            json.WriteStartObject();
            string[] names = traceEvent.PayloadNames ?? Array.Empty<string>();
            for (int i = 0; i < names.Length; ++i)
            {
                json.WritePropertyName(names[i]);
                object? value;
                try
                {
                    value = traceEvent.PayloadValue(i);
                }
                catch (Exception exception)
                {
                    readable = false;
                    json.WriteStringValue("EXCEPTION " + exception.GetType().Name + ": " + exception.Message);
                    continue;
                }
                // What TraceEvent gives in place of a value when its own code threw.
                if (value is string text && text.StartsWith("<<<EXCEPTION")) readable = false;
                WriteValue(json, value);
            }
            json.WriteEndObject();
            json.WriteEndObject();
        }
        output.WriteByte((byte)'\n');
        return readable;
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

    // JSON has no infinities and no NaN.
    private static void WriteDouble(Utf8JsonWriter json, double number)
    {
        if (double.IsFinite(number)) json.WriteNumberValue(number);
        else json.WriteStringValue(double.IsNaN(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity");
    }
}
