//! The seven standard tools: names that models know already, with the signatures that they expect.

/// One standard tool as its JSON texts.
pub(crate) struct Standard {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) input_schema: &'static str,
    pub(crate) output_schema: &'static str,
    /// Whether the engine can serve it itself.
    pub(crate) built_in: bool,
}

/// The standard tool `name`.
pub(crate) fn find(name: &str) -> Option<&'static Standard> {
    STANDARD.iter().find(|tool| tool.name == name)
}

/// All of them, in the order in which they are shown.
pub(crate) static STANDARD: [Standard; 7] = [
    Standard {
        name: "web_search",
        description: "Search the web.",
        input_schema: r#"{"type":"object","properties":{
            "query":{"type":"string","description":"What to look for."},
            "limit":{"type":"integer","minimum":1,"default":5,"description":"How many results at most."}},
            "required":["query"],"additionalProperties":false}"#,
        output_schema: r#"{"type":"object","properties":{"data":{"type":"object","properties":{"web":{"type":"array","items":{
            "type":"object","properties":{"url":{"type":"string"},"title":{"type":"string"},"description":{"type":"string"}},
            "required":["url","title","description"]}}},"required":["web"]}},"required":["data"]}"#,
        built_in: false,
    },
    Standard {
        name: "web_extract",
        description: "Fetch web pages and return their text as Markdown.",
        input_schema: r#"{"type":"object","properties":{
            "urls":{"type":"array","items":{"type":"string"},"description":"The pages to fetch."},
            "char_limit":{"type":"integer","minimum":1,"description":"How many characters of each page at most."}},
            "required":["urls"],"additionalProperties":false}"#,
        output_schema: r#"{"type":"object","properties":{"results":{"type":"array","items":{"type":"object","properties":{
            "url":{"type":"string"},"title":{"type":"string"},"content":{"type":"string"},"error":{"type":["string","null"]}},
            "required":["url","title","content"]}}},"required":["results"]}"#,
        built_in: false,
    },
    Standard {
        name: "read_file",
        description: "Read a text file by lines. The content comes plain, without line numbers.",
        input_schema: r#"{"type":"object","properties":{
            "path":{"type":"string","description":"The file."},
            "offset":{"type":"integer","minimum":1,"default":1,"description":"The first line, counted from 1."},
            "limit":{"type":"integer","minimum":1,"default":2000,"description":"How many lines at most."}},
            "required":["path"],"additionalProperties":false}"#,
        output_schema: r#"{"type":"object","properties":{"content":{"type":"string"},"total_lines":{"type":"integer"},
            "file_size":{"type":"integer"},"truncated":{"type":"boolean"},"hint":{"type":"string"}},
            "required":["content","total_lines","file_size","truncated"]}"#,
        built_in: true,
    },
    Standard {
        name: "write_file",
        description: "Write a whole file, replacing what was there. Missing folders are made.",
        input_schema: r#"{"type":"object","properties":{
            "path":{"type":"string","description":"The file."},
            "content":{"type":"string","description":"All that the file shall contain."}},
            "required":["path","content"],"additionalProperties":false}"#,
        output_schema: r#"{"type":"object","properties":{"status":{"type":"string"},"bytes_written":{"type":"integer"},
            "dirs_created":{"type":"boolean"},"resolved_path":{"type":"string"}},"required":["status","bytes_written"]}"#,
        built_in: true,
    },
    Standard {
        name: "search_files",
        description: "Search file contents by a regular expression, or file names by a glob.",
        input_schema: r#"{"type":"object","properties":{
            "pattern":{"type":"string","description":"A regular expression; a glob with target=\"files\"."},
            "target":{"type":"string","enum":["content","files"],"default":"content","description":"Look into files or at their names."},
            "path":{"type":"string","default":".","description":"The folder or file to search."},
            "file_glob":{"type":"string","description":"Only files whose name matches, such as \"*.py\"."},
            "limit":{"type":"integer","minimum":1,"default":50,"description":"How many results at most."},
            "offset":{"type":"integer","minimum":0,"default":0,"description":"How many results to skip."},
            "output_mode":{"type":"string","enum":["content","files_only","count"],"default":"content","description":"Matching lines, the files that have some, or how many each has."},
            "context":{"type":"integer","minimum":0,"default":0,"description":"Lines to show around a match."},
            "order":{"type":"string","enum":["discovery","modified"],"default":"discovery","description":"As found, or the last modified first."}},
            "required":["pattern"],"additionalProperties":false}"#,
        output_schema: r#"{"type":"object","properties":{"matches":{"type":"array","items":{"type":"object","properties":{
            "path":{"type":"string"},"line":{"type":"integer"},"content":{"type":"string"}},"required":["path","line","content"]}},
            "files":{"type":"array","items":{"type":"string"}},"counts":{"type":"object"},
            "total_count":{"type":"integer"},"truncated":{"type":"boolean"}},"required":["total_count","truncated"]}"#,
        built_in: true,
    },
    Standard {
        name: "patch",
        description: "Edit a file: replace old_string, which must occur exactly once unless replace_all, by new_string. \
                      Or apply a V4A patch to several files with mode=\"patch\".",
        input_schema: r#"{"type":"object","properties":{
            "path":{"type":"string","description":"The file to edit."},
            "old_string":{"type":"string","description":"The text to replace."},
            "new_string":{"type":"string","description":"What to put there."},
            "replace_all":{"type":"boolean","default":false,"description":"Replace every occurrence."},
            "mode":{"type":"string","enum":["replace","patch"],"default":"replace","description":"What the other arguments describe."},
            "patch":{"type":"string","description":"The V4A text (*** Begin Patch …), with mode=\"patch\"."}},
            "additionalProperties":false}"#,
        output_schema: r#"{"type":"object","properties":{"status":{"type":"string"},"success":{"type":"boolean"},
            "diff":{"type":"string"},"files_modified":{"type":"array","items":{"type":"string"}},
            "files_created":{"type":"array","items":{"type":"string"}},"files_deleted":{"type":"array","items":{"type":"string"}},
            "note":{"type":"string"}},"required":["status","success","diff"]}"#,
        built_in: true,
    },
    Standard {
        name: "terminal",
        description: "Run a shell command to its end, in the foreground.",
        input_schema: r#"{"type":"object","properties":{
            "command":{"type":"string","description":"The command, as given to sh -c."},
            "timeout":{"type":"number","exclusiveMinimum":0,"description":"Seconds after which it is killed (exit code 124)."},
            "workdir":{"type":"string","description":"The folder to run it in."}},
            "required":["command"],"additionalProperties":false}"#,
        output_schema: r#"{"type":"object","properties":{"output":{"type":"string"},"exit_code":{"type":"integer"},
            "error":{"type":["string","null"]}},"required":["output","exit_code"]}"#,
        built_in: true,
    },
];
