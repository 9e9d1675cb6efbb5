<?php

// Classes of an application and of Laravel, and stand-ins for everything else that is named.
//
// An application's packages are missing, and its controllers are not needed: a missing name is declared as what the code
// uses it as (a class, an interface, a trait); it accepts every call and returns itself.

namespace CodeTruth;

final class Loader
{
    private const MAGIC = 'public function __construct(...$given) {} '
        .'public function __call(string $name, array $given) { return $this; } '
        .'public static function __callStatic(string $name, array $given) { return new static; } '
        .'public function __get(string $name) { return $this; } public function __toString(): string { return ""; } '
        .'public function __invoke(...$given) { return $this; } ';

    /** Missing names by their kind, from `implements`, `use` within a class, and so on. */
    private array $kinds = [];

    /** Methods that a class renames when it uses a trait, by trait. */
    private array $renamed = [];

    private array $own;

    public function __construct(private string $root, private array $prefixes, private string $laravel)
    {
        $this->own = array_keys($prefixes);
    }

    public function load(string $class): void
    {
        if (str_starts_with($class, 'Illuminate\\')) {
            $this->ofLaravel($class);

            return;
        }
        $path = str_contains($class, '\\Controllers\\') ? null : $this->path($class);
        if ($path !== null) {
            $text = file_get_contents($path);
            $this->note($text);
            require_once TypedConstants::without($path, $text);
        }
        if (! $this->there($class)) {
            $this->makeUp($class);
        }
    }

    public function isOwn(string $class): bool
    {
        foreach ($this->own as $prefix) {
            if (str_starts_with($class, $prefix)) {
                return true;
            }
        }

        return false;
    }

    private function there(string $class): bool
    {
        return class_exists($class, false) || interface_exists($class, false) || trait_exists($class, false) || enum_exists($class, false);
    }

    private function path(string $class): ?string
    {
        foreach ($this->prefixes as $prefix => $folders) {
            if (str_starts_with($class, $prefix)) {
                foreach ((array) $folders as $folder) {
                    $path = "{$this->root}/".rtrim($folder, '/').'/'.str_replace('\\', '/', substr($class, strlen($prefix))).'.php';
                    if (is_file($path)) {
                        return $path;
                    }
                }
            }
        }

        return null;
    }

    private function ofLaravel(string $class): void
    {
        $below = str_replace('\\', '/', substr($class, strlen('Illuminate\\'))).'.php';
        $support = substr($below, strlen('Support/'));
        $places = [$below];
        if (str_starts_with($below, 'Support/')) {
            array_push($places, "Macroable/{$support}", "Collections/{$support}", "Conditionable/{$support}", "Reflection/{$support}");
        }
        foreach ($places as $place) {
            if (is_file("{$this->laravel}/{$place}")) {
                require_once "{$this->laravel}/{$place}";

                return;
            }
        }
    }

    private function makeUp(string $class): void
    {
        $at = strrpos($class, '\\');
        $space = $at === false ? '' : 'namespace '.substr($class, 0, $at).'; ';
        $short = $at === false ? $class : substr($class, $at + 1);
        $guess = str_ends_with($class, 'Trait') ? 'trait' : (str_ends_with($class, 'Interface') ? 'interface' : 'class');
        $kind = $this->kinds[strtolower($class)] ?? $guess;
        $body = $kind === 'class' ? self::MAGIC : '';
        foreach (array_unique($this->renamed[strtolower($class)] ?? []) as $method) {
            $body .= "public function {$method}(...\$given) { return \$this; } ";
        }
        if (in_array(strtolower($short), ['int', 'float', 'string', 'bool', 'array', 'mixed', 'null', 'object', 'iterable', 'callable', 'void', 'never', 'false', 'true'], true)) {
            return;
        }
        $attribute = $kind === 'class' ? '#[\AllowDynamicProperties] ' : '';
        eval("{$space}{$attribute}{$kind} {$short} { {$body} }");
    }

    /** Notes as what a file names other classes. */
    private function note(string $text): void
    {
        $tokens = array_values(array_filter(
            token_get_all($text),
            fn ($token) => ! is_array($token) || ! in_array($token[0], [T_WHITESPACE, T_COMMENT, T_DOC_COMMENT], true),
        ));
        $names = [T_STRING, T_NAME_QUALIFIED, T_NAME_FULLY_QUALIFIED];
        $space = '';
        $imports = [];
        $depth = $inside = $adapted = 0;
        $kind = null;
        foreach ($tokens as $index => $token) {
            $mark = is_array($token) ? $token[0] : $token;
            if ($mark === T_NAMESPACE) {
                $space = is_array($tokens[$index + 1]) ? $tokens[$index + 1][1] : '';
            } elseif ($mark === T_AS && $adapted > 0 && $depth === $adapted) {
                $owner = $this->isConstant($tokens[$index - 2]) ? $this->resolve($tokens[$index - 3][1], $space, $imports) : $used;
                $this->renamed[strtolower($owner)][] = $tokens[$index - 1][1];
            } elseif ($mark === '{' || $mark === T_CURLY_OPEN || $mark === T_DOLLAR_OPEN_CURLY_BRACES) {
                $depth++;
                $adapted = $kind === 'trait' ? $depth : 0;
                $kind = null;
            } elseif ($mark === '}') {
                $depth--;
                $adapted = 0;
                $inside = $depth < $inside ? 0 : $inside;
            } elseif ($mark === ';') {
                $kind = null;
            } elseif ($mark === T_USE && $inside === 0) {
                $this->import($tokens, $index + 1, $imports);
            } elseif ($mark === T_USE && $depth === $inside) {
                $kind = 'trait';
            } elseif (in_array($mark, [T_CLASS, T_TRAIT, T_INTERFACE, T_ENUM], true) && ! $this->isConstant($tokens[$index - 1])) {
                $inside = $depth + 1;
                $extended = $mark === T_INTERFACE ? 'interface' : 'class';
            } elseif ($mark === T_EXTENDS) {
                $kind = $extended ?? 'class';
            } elseif ($mark === T_IMPLEMENTS) {
                $kind = 'interface';
            } elseif ($kind !== null && in_array($mark, $names, true)) {
                $used = $this->resolve($token[1], $space, $imports);
                $this->kinds[strtolower($used)] ??= $kind;
            }
        }
    }

    private function isConstant(array|string $before): bool
    {
        return is_array($before) && $before[0] === T_DOUBLE_COLON;
    }

    private function import(array $tokens, int $index, array &$imports): void
    {
        $prefix = $name = $alias = '';
        for (; isset($tokens[$index]); $index++) {
            $token = $tokens[$index];
            $mark = is_array($token) ? $token[0] : $token;
            if ($mark === '{') {
                [$prefix, $name] = [$name, ''];
            } elseif (in_array($mark, [',', '}', ';'], true)) {
                if ($name !== '') {
                    $short = strrpos($name, '\\');
                    $imports[strtolower($alias ?: ($short === false ? $name : substr($name, $short + 1)))] = $name;
                }
                $name = $alias = '';
                if ($mark === ';') {
                    return;
                }
            } elseif ($mark === T_AS) {
                $alias = $tokens[++$index][1];
            } elseif (in_array($mark, [T_STRING, T_NAME_QUALIFIED, T_NAME_FULLY_QUALIFIED], true)) {
                $name = ltrim($prefix.$token[1], '\\');
            } elseif ($mark === T_NS_SEPARATOR) {
                $name .= '\\';
            }
        }
    }

    private function resolve(string $name, string $space, array $imports): string
    {
        if ($name[0] === '\\') {
            return substr($name, 1);
        }
        [$first, $rest] = array_pad(explode('\\', $name, 2), 2, null);
        $known = $imports[strtolower($first)] ?? null;
        if ($known !== null) {
            return $rest === null ? $known : "{$known}\\{$rest}";
        }

        return $space === '' ? $name : "{$space}\\{$name}";
    }
}
