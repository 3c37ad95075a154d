/*
 * A function for the edge: it greets whom the query names.
 *
 *   clang --target=wasm32-wasi --sysroot=/usr -O2 -s -o hello.wasm hello.c
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
	const char *query = getenv("QUERY_STRING");
	const char *name = "world";

	if (query && strncmp(query, "name=", 5) == 0 && query[5] != '\0')
		name = query + 5;
	printf("Content-Type: text/plain; charset=utf-8\nCache-Control: max-age=60\n\nHello, %s!\n", name);
	return 0;
}
