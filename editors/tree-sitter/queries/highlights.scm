; Colours of rule files.

(comment) @comment
(doc_comment) @comment.documentation
(directive) @keyword.directive

[
  "template" "use" "include" "export" "output"
  "order" "expect" "match" "where" "model"
  "repeat" "optional" "or" "in" "min" "for" "every" "some" "starts"
  "on" "path" "from" "to" "assert" "retire"
] @keyword
(longest) @keyword

(template name: (name) @type.definition)
(starts template: (name) @type)

(kind ["Be" "Ac" "Ed" "Fk" "Jn"] @constant.builtin)
(node name: (name) @variable.definition)
(attributes attribute: (name) @property)

(operation operation: (name) @function.builtin)
"newEntry" @function.builtin
(new_entry type: (name) @constant)

(rule head: (atom relation: (name) @function.definition))
(atom relation: (name) @function)
(export relation: (name) @function)
(answer relation: (name) @function)
(answer column: (name) @property)
(aggregate "count" @function.builtin)
(function) @function.builtin

(variable (name) @variable)
(wildcard) @variable.builtin
(string) @string
[(number) (float)] @number

["=" "==" "!=" "<" "<=" ">" ">=" ":=" ":-" "!" "+" "-" "*" "/" "%" ".."] @operator
["," "." ":" "|"] @punctuation.delimiter
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
