<?php

// Functions and classes of PHP 8.3 to 8.5, for applications and releases of Laravel that use them.

namespace CodeTruth {
    /** Leaves out the types of class constants, which PHP 8.2 cannot parse. */
    final class TypedConstants extends \php_user_filter
    {
        private const TYPED = '/(\bconst\s+)\??[\w\\\\|]+\s+(\w+\s*=)/';

        public function filter($in, $out, &$consumed, bool $closing): int
        {
            while ($bucket = stream_bucket_make_writeable($in)) {
                $this->text .= $bucket->data;
                $consumed += $bucket->datalen;
            }
            if ($closing) {
                $text = preg_replace(self::TYPED, '$1$2', $this->text);
                stream_bucket_append($out, stream_bucket_new(fopen('php://memory', 'w+'), $text));
            }

            return $closing ? PSFS_PASS_ON : PSFS_FEED_ME;
        }

        private string $text = '';

        public static function without(string $path, string $text): string
        {
            $typed = PHP_VERSION_ID < 80300 && preg_match(self::TYPED, $text) === 1;

            return $typed ? "php://filter/read=typed_constants/resource={$path}" : $path;
        }
    }

    stream_filter_register('typed_constants', TypedConstants::class);
}

namespace {
    if (! function_exists('array_first')) {
        function array_first(array $array)
        {
            return $array === [] ? null : $array[array_key_first($array)];
        }

        function array_last(array $array)
        {
            return $array === [] ? null : $array[array_key_last($array)];
        }
    }
    if (! function_exists('array_any')) {
        function array_find(array $array, callable $test)
        {
            foreach ($array as $key => $value) {
                if ($test($value, $key)) {
                    return $value;
                }
            }

            return null;
        }

        function array_any(array $array, callable $test): bool
        {
            foreach ($array as $key => $value) {
                if ($test($value, $key)) {
                    return true;
                }
            }

            return false;
        }

        function array_all(array $array, callable $test): bool
        {
            return ! array_any($array, fn ($value, $key) => ! $test($value, $key));
        }
    }
    // Not run, see laravel.py; what calls them goes on.
    if (! function_exists('shell_exec')) {
        function shell_exec(string $command)
        {
            return null;
        }
    }
    if (! function_exists('exec')) {
        function exec(string $command, &$output = null, &$code = null)
        {
            return false;
        }
    }
    if (! function_exists('mb_ucfirst')) {
        function mb_ucfirst(string $text): string
        {
            return mb_strtoupper(mb_substr($text, 0, 1)).mb_substr($text, 1);
        }

        function mb_lcfirst(string $text): string
        {
            return mb_strtolower(mb_substr($text, 0, 1)).mb_substr($text, 1);
        }
    }
    if (! enum_exists('SortDirection')) {
        enum SortDirection
        {
            case Ascending;
            case Descending;
        }
    }
    if (! function_exists('json_validate')) {
        function json_validate(string $json): bool
        {
            json_decode($json);

            return json_last_error() === JSON_ERROR_NONE;
        }
    }
}
