"""The forms a document is written in: one file a format, each a pure writer from the document's header and its pages,
as ``docs/output.md`` describes them, to a stream. ``pipeline.exports.formats`` names them all."""
