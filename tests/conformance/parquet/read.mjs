// Reads Parquet files with DuckDB and with hyparquet, two independent implementations, and prints what they contain, as
// a JSON document on one line for each request.
//
//   node read.mjs    reads requests from standard input, one JSON document on each line:
//     {"file": PATH}                the types, rows and statistics of a file
//     {"sql": TEXT}                 the rows of a query of DuckDB
import { DuckDBInstance } from '@duckdb/node-api'
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import readline from 'node:readline'

const decoder = new TextDecoder('utf-8', { fatal: true })
const parsers = {
  timestampFromNanoseconds: nanoseconds => nanoseconds,
  stringFromBytes: bytes => bytes && decoder.decode(bytes),
  jsonFromBytes: bytes => bytes && decoder.decode(bytes),
}

// Numbers that JSON cannot represent become text, and bytes become hexadecimal digits.
function printable(_, value) {
  if (typeof value === 'bigint') return value.toString()
  if (typeof value === 'number' && !Number.isFinite(value)) {
    return Number.isNaN(value) ? 'NaN' : value < 0 ? '-Infinity' : 'Infinity'
  }
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  if (ArrayBuffer.isView(value)) return Array.from(value)
  return value
}

function quoted(text) {
  return `'${text.replaceAll("'", "''")}'`
}

async function readWithDuckdb(connection, file) {
  const table = `read_parquet(${quoted(file)}, hive_partitioning = false)`
  const types = await connection.runAndReadAll(`describe select * from ${table}`)
  const rows = await connection.runAndReadAll(`select * from ${table}`)
  return {
    // Pairs keep the order of the columns. An object would put columns first whose names are numbers.
    types: types.getRows().map(row => [row[0], row[1]]),
    rows: rows.getRowObjectsJson(),
  }
}

async function readWithHyparquet(path) {
  const file = await asyncBufferFromFile(path)
  const metadata = await parquetMetadataAsync(file, { parsers })
  const rows = await parquetReadObjects({ file, metadata, compressors, parsers, utf8: false })
  const groups = metadata.row_groups.map(group => ({
    rows: group.num_rows,
    columns: group.columns.map(({ meta_data: column }) => ({
      path: column.path_in_schema,
      encodings: column.encodings,
      codec: column.codec,
      values: column.num_values,
      plain: column.total_uncompressed_size,
      compressed: column.total_compressed_size,
      dictionary: column.dictionary_page_offset !== undefined,
      statistics: column.statistics,
    })),
  }))
  return { schema: metadata.schema, rows, groups }
}

async function answer(connection, request) {
  if (request.sql) return (await connection.runAndReadAll(request.sql)).getRowObjectsJson()
  return {
    duckdb: await readWithDuckdb(connection, request.file),
    hyparquet: await readWithHyparquet(request.file),
  }
}

const connection = await (await DuckDBInstance.create()).connect()
for await (const line of readline.createInterface({ input: process.stdin })) {
  let result
  try {
    result = await answer(connection, JSON.parse(line))
  } catch (error) {
    result = { error: error.stack }
  }
  process.stdout.write(JSON.stringify(result, printable) + '\n')
}
