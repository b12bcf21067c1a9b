// A workload for traces: threads to sample, methods that are compiled while it runs, activities
// with Start and Stop, events of one name with several layouts, and a garbage collection.
// Usage: workload MILLISECONDS

using System;
using System.Diagnostics;
using System.Diagnostics.Tracing;
using System.Threading;

[EventSource(Name = "Workload")]
internal sealed class WorkloadEvents : EventSource
{
    public static readonly WorkloadEvents Log = new();

    [Event(1)]
    public void RequestStart(int number, string path) => WriteEvent(1, number, path);

    [Event(2)]
    public void RequestStop(int number) => WriteEvent(2, number);

    [Event(3, Version = 2, Level = EventLevel.Verbose)]
    public void Found(long value, string text) => WriteEvent(3, value, text);
}

internal static class Program
{
    private static int Main(string[] args)
    {
        if (args.Length != 1 || !int.TryParse(args[0], out int milliseconds))
        {
            Console.Error.WriteLine("usage: workload MILLISECONDS");
            return 2;
        }
        Thread[] threads = new Thread[2];
        long[] results = new long[threads.Length];
        for (int i = 0; i < threads.Length; ++i)
        {
            int number = i;
            threads[i] = new Thread(() => results[number] = Work(number, milliseconds)) { Name = "worker " + i };
            threads[i].Start();
        }
        foreach (Thread thread in threads) thread.Join();
        GC.Collect();
        Console.WriteLine(results[0] + results[1]);
        return 0;
    }

    private static long Work(int worker, int milliseconds)
    {
        Stopwatch time = Stopwatch.StartNew();
        long sum = 0;
        for (int round = 0; time.ElapsedMilliseconds < milliseconds; ++round)
        {
            int request = worker * 1_000_000 + round;
            WorkloadEvents.Log.RequestStart(request, "/items/" + round);
            WorkloadEvents.Log.Write("Progress", new { Round = round, Worker = worker });
            if (round % 2 == 1) WorkloadEvents.Log.Write("Progress", new { Text = "odd" });
            sum += CountPrimes(20_000);
            WorkloadEvents.Log.Found(sum, "grüße");
            WorkloadEvents.Log.RequestStop(request);
        }
        return sum;
    }

    private static int CountPrimes(int below)
    {
        int count = 0;
        for (int number = 2; number < below; ++number)
        {
            if (IsPrime(number)) ++count;
        }
        return count;
    }

    private static bool IsPrime(int number)
    {
        for (int divisor = 2; divisor * divisor <= number; ++divisor)
        {
            if (number % divisor == 0) return false;
        }
        return true;
    }
}
